"""One request with everything that its page needs, as this person may see it now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from journal.errors import NotFound
from journal.prepared_queries import Parameter, PreparedQuery
from notifications.channels import reach
from policies.models import Person
from reviews import permissions
from reviews.administration import queue_presets
from reviews.administration.queue_presets import OfferedPreset
from reviews.choices import (
    FINISHED,
    OPEN,
    ExecutionStatus,
    RequestStatus,
    StopMode,
    Verdict,
)
from reviews.dialogue import rounds
from reviews.dialogue.rounds import Dialogue
from reviews.effects.wording import format_people
from reviews.governance import readings, voters
from reviews.governance.voters import CountedVotes, Voter
from reviews.grants import sequence
from reviews.models import (
    ApprovalRequest,
    Decision,
    Draft,
    Execution,
    Note,
    RequestVersion,
    Revision,
    StateReading,
)
from reviews.stops import incidents, stops

from ..components import holding as components_holding
from ..components import states, visibility
from ..components.choice import VerdictChoice, build_verdict_choice
from ..components.holding import HoldStatus
from ..components.log_sentences import HIDDEN_NAME
from ..components.states import ApprovalTally, EndedParent, SameAction, StateLabel


@dataclass
class LoadedRequest:
    """A request and all that its page needs, loaded once for one person."""

    person: Person
    request: ApprovalRequest
    sealed: RequestVersion
    decisions: list[Decision]  # only the person's own while reviewers are blind
    given: int
    execution: Execution | None
    stopped: StopMode | None
    now: datetime
    reading: StateReading | None = None  # the newest since the proposal, if any
    remarked: bool = False  # there are notes
    drafted: bool = False  # this person has an unsent draft
    refusal: str = ""  # why the messages about it failed, if none was sent

    @property
    def revision(self) -> Revision:
        return self.sealed.revision

    @property
    def waiting(self) -> bool:
        """Whether people can still be asked."""
        pending = self.request.status == RequestStatus.PENDING
        return pending and incidents.has_time_left(self.request, self.now)

    @property
    def finished(self) -> bool:
        """Whether nothing can change any more."""
        if self.request.status == RequestStatus.AUTHORIZED:
            return self.execution is not None and self.execution.status in FINISHED
        return self.settled

    @property
    def settled(self) -> bool:
        return self.request.status not in OPEN

    @property
    def announcement(self) -> str:
        """What a screen reader announces about the state."""
        until = self.request.recall_until
        if until is None:
            return f"{self.state.word} {self.state.note}".strip()
        seconds = max(round((until - self.now).total_seconds()), 0)
        return f"Approved. The approval can be undone for {seconds} seconds."

    def describe_missing_approvals(self, left: int) -> str:
        """Who must still approve: `One more supervisor must approve`."""
        roles = {step["role"] for step in self.sealed.steps}
        who = roles.pop() if len(roles) == 1 else "person"
        if left == 1:
            return f"One more {who} must approve"
        return f"{format_people(left, f'more {who}')} must approve"

    @property
    def tally(self) -> ApprovalTally:
        return ApprovalTally(
            self.given, sum(step["required"] for step in self.sealed.steps)
        )

    @property
    def own(self) -> Decision | None:
        own = [d for d in self.decisions if d.reviewer_id == self.person.pk]
        return own[-1] if own else None

    @cached_property
    def state(self) -> StateLabel:
        return states.build_request_state(
            self.request,
            self.execution,
            self.tally,
            cause=self.sealed.cause,
            since=self.sealed.created_at,
            now=self.now,
            held=self.holding,
            by=self._ended_by,
            behind=self.behind,
        )

    @cached_property
    def dialogue(self) -> Dialogue:
        """The messages between people and the agent. One query if there are any."""
        if not self.request.message_count:
            return Dialogue(())
        return Dialogue(rounds.list_messages(self.request))

    @cached_property
    def behind(self) -> bool:
        """Whether it is approved but has to wait for its turn in its batch."""
        row = self.execution
        queued = row is not None and row.status == ExecutionStatus.QUEUED
        return row is not None and queued and sequence.must_wait(row)

    @cached_property
    def is_batch_halted(self) -> bool:
        """Whether it does not run until its batch, halted after a failure, goes on."""
        row = self.execution
        open_ends = {ExecutionStatus.QUEUED, ExecutionStatus.FAILED}
        return (
            row is not None
            and row.status in open_ends
            and sequence.is_batch_halted(row)
        )

    @cached_property
    def holding(self) -> HoldStatus:
        """The hold on a request that can still be decided."""
        if not self.waiting:
            return HoldStatus()
        return components_holding.build_hold_status(self.person, self.request, self.now)

    @cached_property
    def ended_parent(self) -> EndedParent | None:
        """The call that its agent says it is part of, if that call ended without
        running. One query if it names one."""
        proposal = self.request.proposal
        return states.list_ended_parents([proposal]).get(proposal.parent)

    @cached_property
    def same_actions(self) -> list[SameAction]:
        """Earlier proposals of the action in its run, if it waits. One query."""
        if not self.waiting:
            return []
        revision = self.sealed.revision
        return states.list_same_actions(self.person, self.request, revision)

    @property
    def unreached(self) -> str:
        """Why nobody was told of a request that waits; empty once somebody was."""
        return self.refusal if self.waiting else ""

    @cached_property
    def lost(self) -> str:
        """The sentence about a hold that this person lost, while it waits."""
        return (
            components_holding.describe_lost_hold(self.person, self.request)
            if self.waiting
            else ""
        )

    def lost_since(self, etag: str) -> str:
        """The same, unless the page with this ETag shows it already."""
        return "" if etag.endswith(".1") else self.lost

    def answered_since(self, etag: str) -> str:
        """What became of the offer, unless the page with this ETag says it."""
        shown = etag.split(".")[-3:-2] or [""]
        return "" if shown[0].startswith("1") else self.holding.answer

    @property
    def _ended_by(self) -> Person | str:
        """The person who rejected it, where this person may see it."""
        if self.request.status != RequestStatus.REJECTED:
            return ""
        if self.person.public_id in self.request.proposal.barred:
            return ""
        rejected = [d for d in self.decisions if d.verdict == Verdict.REJECT]
        return rejected[-1].reviewer if rejected else ""

    @cached_property
    def why_not(self) -> str:
        """Why this person may not decide now, by the operation's check; or empty."""
        if not self.waiting:
            return self.state.word
        return permissions.describe_why_cannot_decide(
            self.person, self.request, self.sealed
        )

    @cached_property
    def preset(self) -> OfferedPreset:
        """What the panels offer in the request's queue. No query."""
        return queue_presets.read_preset(self.request.queue)

    @cached_property
    def deciders(self) -> list[Voter]:
        return voters.list_voters(self.request.queue_id)

    @cached_property
    def votes(self) -> CountedVotes:
        """The votes that count towards the current version."""
        pk = self.request.pk
        return voters.list_counted_votes([pk])[pk] if self.given else []

    @cached_property
    def choice(self) -> VerdictChoice:
        return build_verdict_choice(
            self.person, self.request, self.sealed, self.votes, self.deciders
        )

    @property
    def _why_uncounted(self) -> str:
        given = [step for step, _ in self.votes]
        return permissions.describe_why_uncounted(self.person, self.sealed, given)

    @property
    def able(self) -> bool:
        """Whether a verdict of this person would be accepted now."""
        return not self.why_not and not self.holding.by

    @property
    def key(self) -> str:
        """A text that changes whenever this person's possible actions change. It starts
        with the version."""
        execution = self.execution.status if self.execution else ""
        able = int(self.able) + int(self.able and not self._why_uncounted)
        parts = [self.request.version, self.state.key, execution, able]
        read = self.reading.pk if self.reading else 0
        offered = int(self.holding.offered)
        return "-".join(
            str(part) for part in [*parts, self.stopped or "", read, offered]
        )

    @property
    def etag(self) -> str:
        """A text that changes whenever the state strip changes."""
        until = f"{self.request.expires_at.timestamp():.0f}"
        lost, messages = int(bool(self.lost)), self.request.message_count
        reached = f"{int(not self.unreached)}{int(bool(self.ended_parent))}"
        asked = f"{self.given}.{self.request.joined}.{reached}"
        return f"{self.key}.{asked}.{until}.{self.holding.key}.{messages}.{lost}"

    def has_new_messages(self, etag: str) -> bool:
        """Whether there are messages that the page with this ETag does not show."""
        return etag.split(".")[-2:-1] != [str(self.request.message_count)]


def load_request(person: Person, pk: str, now: datetime) -> LoadedRequest:
    """Load one request that this person may see, in five queries. Raises NotFound."""
    sealed: Any = _SEALED.fetch_first(pk=pk, person=person.pk)
    if sealed is None or not visibility.is_visible_request(person, sealed.request):
        raise NotFound
    request = sealed.request
    proposal = request.proposal
    newest: int | None = sealed.newest_reading
    return LoadedRequest(
        person=person,
        request=request,
        sealed=sealed,
        decisions=_list_readable_decisions(person, request),
        given=sealed.given,
        execution=_EXECUTION.fetch_first(proposal=proposal.pk),
        stopped=stops.find_stop_mode(*stops.build_action_key(proposal)),
        now=now,
        reading=_READING.fetch_first(pk=newest) if newest else None,
        remarked=sealed.remarked,
        drafted=sealed.drafted,
        refusal=sealed.refusal or "",
    )


def hide_name(loaded: LoadedRequest, named: Person) -> Person | str:
    """A reviewer, hidden from the people whose own run it is (as in the log)."""
    person = loaded.person
    concerned = person.public_id in loaded.request.proposal.barred
    if concerned and not permissions.never_decides(person):
        return HIDDEN_NAME
    return named


def _list_readable_decisions(
    person: Person, request: ApprovalRequest
) -> list[Decision]:
    """The votes this person may read: others' only once the request is settled, unless
    the person can never decide."""
    if request.status in OPEN and not permissions.never_decides(person):
        return _OWN_DECISIONS.fetch_all(request=request.pk, person=person.pk)
    return _DECISIONS.fetch_all(request=request.pk)


# The current version of a request, with what its page shows of it.
_SEALED = PreparedQuery(
    lambda: (
        RequestVersion.objects.filter(
            request_id=Parameter("pk"), number=F("request__version")
        )
        .select_related(
            "request__proposal",
            "request__queue__preset",
            "request__hold__holder",
            "request__hold__offered_to",
            "request__hold__declined_by",
            "request__hold__lost_to",
            "revision__tool",
            "policy",
        )
        .annotate(
            given=visibility.build_approval_count("request", "number"),
            newest_reading=readings.build_newest_subquery(),
            refusal=reach.build_refusal_subquery(),
            remarked=Exists(Note.objects.filter(request=OuterRef("request"))),
            drafted=Exists(
                Draft.objects.filter(
                    request=OuterRef("request"), person_id=Parameter("person")
                )
            ),
        )
    )
)
_READING = PreparedQuery(lambda: StateReading.objects.filter(pk=Parameter("pk")))
_EXECUTION = PreparedQuery(
    lambda: (
        Execution.objects.filter(proposal_id=Parameter("proposal"))
        .select_related("grant")
        .order_by("-queued_at")[:1]
    )
)
_DECISIONS = PreparedQuery(lambda: _select_decisions())
_OWN_DECISIONS = PreparedQuery(
    lambda: _select_decisions().filter(reviewer_id=Parameter("person"))
)


def _select_decisions() -> QuerySet[Decision]:
    decisions = Decision.objects.filter(request_id=Parameter("request"))
    return decisions.select_related("reviewer").order_by("at")
