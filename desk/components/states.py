"""The label of a request's or an execution's state: one word and one icon, never colour
alone.

EXPIRED is never called rejected, authorized is never called executed, and an unknown
outcome is never called failed (docs/invariants.md I20).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import F, OuterRef, Q, Subquery
from django.urls import reverse

from journal.clock import format_time
from policies.models import Person
from reviews.choices import (
    EXECUTION_SPECS,
    REQUEST_SPECS,
    UNGRANTED,
    ExecutionStatus,
    RequestStatus,
)
from reviews.effects.wording import format_duration
from reviews.grants import uncertain
from reviews.models import ApprovalRequest, Execution, Proposal, Revision
from reviews.stops import incidents

from . import visibility
from .holding import HoldStatus

APPROVAL_UNDONE = "Approval undone. Nothing was executed."
# Of a request about which nothing else is to be said.
PENDING_WORD = REQUEST_SPECS[RequestStatus.PENDING].label


@dataclass(frozen=True, slots=True)
class StateLabel:
    """A state as the strip, a row or the outcome shows it."""

    key: str
    word: str
    icon: str = "wait"
    quarters: int | None = None
    note: str = ""
    at: datetime | None = None  # the time in `word`
    note_at: datetime | None = None  # the time in `note`
    until: datetime | None = None
    until_words: str = ""
    left: timedelta | None = None
    who: Person | str = ""  # the person in `word`

    @property
    def until_said(self) -> str:
        """The time left when the page was made, for a browser without script."""
        return self.until_words.replace("{}", format_duration(self.left))


@dataclass(frozen=True, slots=True)
class ApprovalTally:
    """Approvals given and required over the open steps, without names."""

    given: int
    required: int

    @property
    def squares(self) -> list[bool]:
        """One square for each required approval; True for those given."""
        return [place < self.given for place in range(self.required)]

    @property
    def said(self) -> str:
        return f"{self.given} of {self.required}"


def build_request_state(
    request: ApprovalRequest,
    execution: Execution | None,
    tally: ApprovalTally,
    *,
    cause: str,
    now: datetime,
    since: datetime | None = None,
    held: HoldStatus | None = None,
    by: Person | str = "",
    behind: bool = False,
) -> StateLabel:
    """The state of a request; once it is authorized, that of its execution.

    `since` is when the version was sealed, `by` the person who rejected it,
    `held` the hold on it. `behind`: it waits for other members of its batch.
    """
    if request.status == RequestStatus.PENDING:
        return _add_hold(_build_pending_state(request, tally, cause, now, since), held)
    if request.status == RequestStatus.RECALLABLE and tally.given < tally.required:
        return StateLabel("stuck", "Votes are missing. Nothing runs.", icon="wait")
    if request.status == RequestStatus.RECALLABLE:
        return StateLabel(
            "recallable",
            "Approved,",
            quarters=1,
            until=request.recall_until,
            until_words="can be undone for {}",
            left=request.recall_until - now if request.recall_until else None,
        )
    if request.status == RequestStatus.AUTHORIZED:
        if behind:
            return StateLabel("queued", "Approved, waiting in its batch", icon="wait")
        return build_execution_state(execution)
    return _build_ended_state(request, by)


def _add_hold(state: StateLabel, held: HoldStatus | None) -> StateLabel:
    """The hold comes first; the state becomes its note."""
    if held is None or held.free or state.key == "expired":
        return state
    if held.own:
        words = f"Claimed by you until {format_time(held.until)}"
        offer = f"Offered to {held.offered_to}" if held.offered_to else held.answer
        return _move_word_to_note(
            state, StateLabel(state.key, words, icon="hold", at=held.until, note=offer)
        )
    if held.offered:
        words = f"{held.by} offers this to you"
        holds = StateLabel("held", words, quarters=2, who=held.by)
        return _move_word_to_note(state, holds)
    words = f"Claimed by {held.by} since {format_time(held.since)}"
    return _move_word_to_note(
        state, StateLabel("held", words, quarters=2, at=held.since, who=held.by)
    )


def _move_word_to_note(state: StateLabel, holds: StateLabel) -> StateLabel:
    word = "" if state.word == PENDING_WORD else state.word
    note = " · ".join(text for text in (holds.note, word) if text)
    return replace(holds, note=note, note_at=state.at)


def format_with_agent(since: datetime) -> str:
    """That people have sent the request back to its agent, and when."""
    return f"With the agent since {format_time(since)}"


# Why it waits again, by the cause of its version.
_BACK_WORDS = {
    "returned": "Returned with guidance",
    "moved": "Moved from another queue",
    "revoked": "Approval needed again: one was revoked",
    "recalled": APPROVAL_UNDONE,
}


def _build_pending_state(
    request: ApprovalRequest,
    tally: ApprovalTally,
    cause: str,
    now: datetime,
    since: datetime | None,
) -> StateLabel:
    if not incidents.has_time_left(request, now):
        return _build_expired_state(request)
    sent_back = request.with_agent_since
    if sent_back is not None and (since is None or sent_back > since):
        words = format_with_agent(sent_back)
        return StateLabel("waiting", words, icon="back", at=sent_back)
    if tally.given:
        words = f"{tally.said} approvals"
        return StateLabel("waiting", words, quarters=2)
    if cause in {"escalated", "verifier"}:
        clock = f" since {format_time(since)}" if since else ""
        return StateLabel("escalated", f"With supervisors{clock}", icon="up", at=since)
    if cause in _BACK_WORDS:
        return StateLabel("waiting", _BACK_WORDS[cause], icon="back")
    return StateLabel("waiting", PENDING_WORD)


def _build_expired_state(request: ApprovalRequest) -> StateLabel:
    at = request.expires_at
    words = f"Expired {format_time(at)}. {uncertain.describe_effect(request)}"
    return StateLabel("expired", words, icon="void", at=at)


def _build_ended_state(request: ApprovalRequest, by: Person | str) -> StateLabel:
    at = request.settled_at
    if request.canary:
        words = "That was a canary, a planted test. Nothing was executed."
        return StateLabel("withdrawn", words, icon="ask", at=at)
    if request.status == RequestStatus.EXPIRED:
        return _build_expired_state(request)
    spec = REQUEST_SPECS[request.status]
    who = f"by {by}" if by else spec.by
    parts = filter(None, (spec.label, who, format_time(at) if at else ""))
    return StateLabel(request.status, " ".join(parts), icon=spec.icon, at=at, who=by)


def _is_delayed(execution: Execution) -> bool:
    """Whether a condition of the approval moved its start."""
    return not execution.attempts and execution.due_at > execution.queued_at


def build_execution_state(execution: Execution | None) -> StateLabel:
    """The state of an authorized effect; None does not exist yet."""
    if execution is None:
        return StateLabel("authorized", "Authorized, not started", quarters=1)
    status = ExecutionStatus(execution.status)
    if status is ExecutionStatus.QUEUED and _is_delayed(execution):
        does = "the agent may perform it" if execution.by_agent else "runs"
        words = f"Authorized, {does} from {format_time(execution.due_at)}"
        return StateLabel("queued", words, icon="wait", at=execution.due_at)
    if status is ExecutionStatus.QUEUED and execution.by_agent:
        return StateLabel("authorized", "Authorized, waiting for the agent", quarters=1)
    if status is ExecutionStatus.QUEUED and execution.attempts and execution.code:
        words = (
            f"Failed without effect, next attempt at {format_time(execution.due_at)}"
        )
        return StateLabel("queued", words, icon="wait", at=execution.due_at)
    spec = EXECUTION_SPECS[status]
    at = execution.finished_at or execution.claimed_at
    words = spec.state.format(clock=f" {format_time(at)}" if at else "")
    timed = at if "{clock}" in spec.state else None
    return StateLabel(spec.key, words, spec.icon, spec.quarters, at=timed)


@dataclass(frozen=True, slots=True)
class EndedParent:
    """The call that an agent named as the parent of another, and that never ran."""

    proposal: str
    status: str  # of its request; `blocked` if it never had one
    at: datetime

    @property
    def said(self) -> str:
        """How it ended: `was rejected`."""
        if self.status == "blocked":
            return "was blocked"
        return REQUEST_SPECS[self.status].ending


@dataclass(frozen=True, slots=True)
class SameAction:
    """An earlier proposal of the same action in the same run."""

    outcome: str  # what became of it: `was performed`
    at: datetime
    url: str  # of its request; "" for one that nobody was asked about


MOST_SAME = 5


def list_same_actions(
    person: Person, request: ApprovalRequest, revision: Revision
) -> list[SameAction]:
    """The newest proposals of this action that its run made before this one, as far as
    this person may see them. One query."""
    proposal = request.proposal
    done = Execution.objects.filter(proposal=OuterRef("proposal")).order_by("-pk")
    rows = Revision.objects.filter(
        proposal__in=visibility.select_visible_proposals(person),
        action_hash=revision.action_hash,
        number=F("proposal__revision"),
        proposal__agent=proposal.agent,
        proposal__thread=proposal.thread,
        proposal__canary=False,
        proposal__created_at__lt=proposal.created_at,
        proposal__repeats="",
        proposal__blocked_by="",
    ).annotate(effect=Subquery(done.values("status")[:1]))
    actions = rows.order_by("-proposal__created_at").values_list(
        "proposal__request__status",
        "effect",
        "proposal__created_at",
        "proposal__request",
    )
    return [
        SameAction(_describe_same(status, effect), at, _build_request_url(link))
        for status, effect, at, link in actions[:MOST_SAME]
    ]


def _describe_same(status: str | None, effect: str | None) -> str:
    if effect is not None:
        return EXECUTION_SPECS[effect].performed
    if status is None:
        return "was proposed"
    return REQUEST_SPECS[status].ending or "is still open"


def _build_request_url(pk: str | None) -> str:
    return reverse("reviews:request_detail", args=[pk]) if pk else ""


def list_ended_parents(proposals: Iterable[Proposal]) -> dict[str, EndedParent]:
    """The parents of these proposals that ended without running, by the parent's id;
    one query, and none if no proposal names a parent."""
    wanted = {proposal.parent for proposal in proposals if proposal.parent}
    if not wanted:
        return {}
    ended = Q(request__status__in=UNGRANTED, request__canary=False)
    shut = Q(blocked_by__gt="") | Q(repeats__gt="")
    rows = Proposal.objects.filter(ended | shut, pk__in=wanted).values_list(
        "pk", "blocked_by", "request__status", "request__settled_at", "created_at"
    )
    return {
        pk: EndedParent(
            pk,
            "blocked" if blocked else status or RequestStatus.REJECTED.value,
            settled or created,
        )
        for pk, blocked, status, settled, created in rows
    }
