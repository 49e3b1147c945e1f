"""The review page: regions R0 to R8 of one request, as values for the template.

The page is one class, built in steps by region: the strip (R0), the approvals (the part
of R4 that changes), the history (R7) and the decision (R8). R1 to R6 are in `content`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from journal.clock import format_time
from journal.errors import PreconditionFailed, StaleVersion
from notifications.channels import reach
from policies import tools
from policies.models import Person
from policies.staffing import Shortage
from reviews import deadlines, permissions
from reviews.choices import REVERSAL_SOURCE, RequestStatus
from reviews.decisions import drafts
from reviews.effects import describe
from reviews.effects.wording import format_names, format_people, format_required_people
from reviews.evidence import reveals
from reviews.governance import readings, voters
from reviews.grants import uncertain
from reviews.models import RequestVersion, StateReading
from reviews.permissions import Permission
from reviews.requests import repeats
from reviews.standing_grants import issuance

from ..batches import links
from ..components import banners, formatting, log_lines, snapshots, switches, undo
from ..components.banners import PolicyChange, SwitchBanner
from ..components.choice import VERDICT_WORDINGS, VerdictChoice
from ..components.formatting import DeadlineClock
from ..components.regions import CAUSE_WORDS
from ..components.states import EndedParent, SameAction, StateLabel
from . import comparison, next_proposals, versions
from . import escalation as escalations
from . import outcome as outcomes
from .content import RenderedRegions
from .load import LoadedRequest
from .next_proposals import NextProposal
from .outcome import OutcomePanel
from .panels import MessageButton, describe_draft, list_message_buttons
from .versions import ConversationLine, Remark

PAGE_CHANGED_TEXT = "This page has changed since you opened it."


@dataclass(frozen=True, slots=True)
class ChangeBanner:
    """What changed while the reader was reading: the version or state they read, and
    the current one."""

    title: str
    note: str
    read: int
    now: int
    rows: Sequence[describe.ArgumentChange] = ()
    heads: tuple[str, str] | None = None

    @property
    def was(self) -> str:
        """The heading of the column with what was read."""
        return self.heads[0] if self.heads else f"Version {self.read} (as you read it)"

    @property
    def is_now(self) -> str:
        """The heading of the column with what is current."""
        return self.heads[1] if self.heads else f"Version {self.now} (current)"


REVISED_WORDS = {
    "revised": "The agent revised this request",
    "modified": "A person changed this request",
    "escalated": "A reviewer escalated this request",
    "verifier": "A verifier escalated this request",
    "recalled": "An approval of this request was undone",
    "returned": "A supervisor returned this request with guidance",
}


def build_revised_banner(loaded: LoadedRequest, read: int) -> ChangeBanner:
    """The banner when another version replaced the one that was read."""
    before = (
        RequestVersion.objects.filter(request=loaded.request, number=read)
        .select_related("revision__tool")
        .first()
    )
    rows = (
        describe.list_page_changes(before.revision, loaded.revision) if before else []
    )
    what = REVISED_WORDS.get(loaded.sealed.cause, "Someone changed this request")
    at = loaded.sealed.created_at
    said = format_time(at)
    title = f"{what} at {said} while you were reading version {read}."
    note = "You have not approved anything."
    if before and not rows:
        note += f" The action is the same as in version {read}."
    return ChangeBanner(title, note, read, loaded.request.version, rows)


def build_stale_state_banner(
    loaded: LoadedRequest, read: StateReading | None
) -> ChangeBanner:
    """The banner when the business state changed since it was read."""
    was = readings.load_shown_reading(read, loaded.revision)
    now = readings.load_shown_reading(loaded.reading, loaded.revision)
    at = loaded.reading.at if loaded.reading else loaded.now
    return ChangeBanner(
        f"The record changed; it was read again at {format_time(at)}.",
        "Nothing was sent. Refresh the record, then decide.",
        loaded.request.version,
        loaded.request.version,
        comparison.build_moved_rows(loaded.revision, was, now),
        heads=("As you read it", "Current"),
    )


def build_page_changed_banner(version: int) -> ChangeBanner:
    """The banner when the same version would now be rendered differently."""
    return ChangeBanner(PAGE_CHANGED_TEXT, "Nothing was recorded.", version, version)


MOST_FIELDS = 4  # named in the strip; the page lists all


class StripRegion(RenderedRegions):
    """R0: state, deadline and holder."""

    # R0
    @cached_property
    def state(self) -> StateLabel:
        """The label in the strip. A new version or a changed business state comes
        before the request's own state."""
        if self.moved and self.loaded.waiting and 0 < self.old < self.version:
            said = f"New version {self.version} while you were reading"
            return StateLabel("moved", said, icon="warn")
        if not self.target_moved:
            return self.loaded.state
        found = self.loaded.reading
        if found is None:
            return StateLabel("moved", "The record changed", icon="warn")
        said = f"The record changed at {format_time(found.at)}"
        return StateLabel("moved", said, icon="warn", at=found.at)

    @cached_property
    def version_said(self) -> str:
        """What made the version on the screen, where it is not the agent's proposal.
        While the request is open, deciders do not learn each other's names."""
        sealed = self.loaded.sealed
        plain = sealed.cause in {"opened", "modified"}
        cause = "" if plain else CAUSE_WORDS.get(sealed.cause, "")
        is_edit = sealed.revision.author_kind == "person"
        edit = f"{self._editor} changed {self._edited_fields}" if is_edit else ""
        return ". ".join(filter(None, (cause, edit)))

    @property
    def _editor(self) -> str:
        loaded, author = self.loaded, self.loaded.revision.author_id
        if author == loaded.person.public_id:
            return "You"
        if log_lines.hides_names(loaded.person, loaded.request):
            return "Another person"
        found = Person.objects.filter(public_id=author).first()
        return str(found) if found else "A person"

    @property
    def _edited_fields(self) -> str:
        edited = self.regions.edited
        labels = [one.label for one in edited.rows] if edited else []
        return format_names(labels, most=MOST_FIELDS) if labels else "nothing"

    @property
    def may_take(self) -> bool:
        """Whether this person may take the hold."""
        return self.loaded.able and not self.hold.mine

    @property
    def extended(self) -> datetime | None:
        """The deadline that one extension would give; None where it may not be
        extended."""
        if not self.loaded.able:
            return None
        later = deadlines.compute_extended_deadline(
            self.loaded.request, self.loaded.sealed
        )
        return later if later > self.loaded.request.expires_at else None

    @property
    def is_hard(self) -> bool:
        """Whether the policy allows no more time."""
        return self.loaded.able and self.extended is None

    @property
    def clock(self) -> DeadlineClock | None:
        """The deadline; None once nobody is asked any more."""
        if not self.loaded.waiting:
            return None
        return formatting.build_request_clock(self.loaded.request, self.loaded.now)

    @property
    def times_asked(self) -> str:
        """How often the agent has proposed the action; empty when only once."""
        joined = self.loaded.request.joined
        return formatting.format_times_asked(joined) if joined else ""

    @cached_property
    def repeats_said(self) -> str:
        """How many later proposals got the rejection of this request; empty without
        any."""
        request = self.loaded.request
        if request.status != RequestStatus.REJECTED:
            return ""
        count = repeats.count_repeats(request.proposal_id)
        more = format_people(count, "more time")
        return f"Proposed {more}; rejected automatically" if count else ""

    @property
    def unreached(self) -> str:
        """That nobody was told of the request, and why; empty once somebody was."""
        why = self.loaded.unreached
        return f"{reach.UNREACHED}: {why}" if why else ""

    @property
    def ended_parent(self) -> EndedParent | None:
        """The parent call that ended without running."""
        return self.loaded.ended_parent

    @property
    def same_actions(self) -> list[SameAction]:
        """What became of earlier proposals of this action in its run."""
        return self.loaded.same_actions

    @property
    def halt(self) -> str:
        """That what it asks for is paused or stopped; empty unless it is."""
        return outcomes.describe_halt(self.loaded)

    @cached_property
    def halts(self) -> list[SwitchBanner]:
        """What is paused or stopped, by whom and why, as far as this person may see
        it."""
        if not self.halt:
            return []
        action = (self.agent, self.thread, self.tool)
        return switches.list_switches_over(self.loaded.person, action)

    @property
    def notices_url(self) -> str:
        """The list of the messages; empty for people who may not read it."""
        person, request = self.loaded.person, self.loaded.request
        allowed = permissions.has_permission(person, Permission.SEE_DELIVERIES)
        if not allowed or person.public_id in request.proposal.barred:
            return ""
        return reverse("reviews:notices", args=[self.id])

    @property
    def over(self) -> bool:
        """Whether nothing on this page can change any more."""
        return self.loaded.finished

    @property
    def title(self) -> str:
        """The window's title: never the agent's words."""
        return f"Request {self.id}"

    @property
    def etag(self) -> str:
        return self.loaded.etag


MOST_NAMES = 4  # people listed by name


class ApprovalsRegion(StripRegion):
    """The part of R4 that changes: who is asked, and how many have approved; no
    names."""

    # R4, the part that changes
    @property
    def stop_url(self) -> str:
        """Where the run can be stopped."""
        return reverse("agents:stop_thread", args=[self.agent, self.thread])

    @property
    def stop_any_url(self) -> str:
        """The same from the header, where the tool can be stopped as well."""
        return f"{self.stop_url}?{urlencode({'tool': self.tool})}"

    @property
    def squares(self) -> list[bool]:
        return self.loaded.tally.squares

    @property
    def approvals_said(self) -> str:
        """The approvals given and required, in words."""
        tally = self.loaded.tally
        hidden = " Names and votes are hidden until the request is decided."
        roles = format_required_people(self.loaded.sealed.steps)
        said = f"{tally.said} ({roles})."
        shows_names = self.loaded.settled or tally.required == 1
        return said if shows_names else said + hidden

    @property
    def required_approvals(self) -> str:
        """How many approvals the request requires: `1 approval`."""
        return format_people(self.loaded.tally.required, "approval")

    @cached_property
    def others(self) -> str:
        """Who else could give a vote that counts. Only a number once somebody voted:
        names would reveal who has not."""
        loaded = self.loaded
        if not loaded.waiting:
            return ""
        sealed, request = loaded.sealed, loaded.request
        found = voters.list_remaining_voters(
            loaded.deciders, request, sealed, loaded.votes
        )
        names = [str(one.person) for one in found if one.id != loaded.person.public_id]
        if not names:
            return "Nobody" if loaded.why_not else "Nobody else"
        known = sealed.carried or sealed.escalated_by or sealed.edited_by
        if loaded.given or known or self._is_own:
            return format_people(len(names), "other person")
        return format_names(names, most=MOST_NAMES)

    @property
    def others_label(self) -> str:
        """The label of `others`, who decide beside this person or instead of them."""
        return "Can decide" if self.loaded.why_not else "Can also decide"

    @property
    def lacking(self) -> Shortage | None:
        """Which people there are too few of; None while enough can decide."""
        loaded = self.loaded
        if not loaded.waiting:
            return None
        votes, sealed = loaded.votes, loaded.sealed
        return voters.find_shortage(loaded.deciders, loaded.request, sealed, votes)

    @property
    def _is_own(self) -> bool:
        """Whether this is the person's own run: they never learn who decides on it."""
        return self.loaded.person.public_id in self.loaded.request.barred

    @property
    def if_silent(self) -> str:
        """What happens without an answer; empty once there is one."""
        if not self.loaded.waiting:
            return ""
        return "It expires. It is never approved automatically."


class HistoryRegion(ApprovalsRegion):
    """R7 and what stands beside the regions: history, escalation, reversal and hidden
    values."""

    # R7
    @property
    def opened_at(self) -> datetime:
        return self.loaded.request.opened_at

    @property
    def sealed_at(self) -> datetime:
        return self.loaded.sealed.created_at

    @cached_property
    def hidden(self) -> bool:
        """Whether there are hidden values that this person may reveal."""
        if not permissions.has_permission(self.loaded.person, Permission.REVEAL):
            return False
        return bool(reveals.list_hidden_arguments(self.loaded.sealed))

    @cached_property
    def kept_pages(self) -> list[snapshots.EvidenceLink]:
        """Links to the pages stored with decisions that this person may open."""
        loaded = self.loaded
        return snapshots.list_evidence_links(
            loaded.person, loaded.request, loaded.decisions
        )

    @cached_property
    def history(self) -> list[log_lines.HistoryLine]:
        """The request's log records."""
        return log_lines.build_history(self.loaded.person, self.loaded.request)

    @cached_property
    def escalation(self) -> escalations.EscalationPanel | None:
        """The panel for a supervisor of an escalated request."""
        return escalations.build_escalation_panel(self.loaded)

    @cached_property
    def reverses(self) -> undo.ReversedEffect | None:
        """The effect that this proposal would undo; None for other proposals."""
        return undo.find_reversed_effect(self.loaded.request.proposal)

    @cached_property
    def guidance(self) -> str:
        """A supervisor's guidance on a request that was given back."""
        return escalations.find_guidance(self.loaded)


@dataclass(frozen=True, slots=True)
class KeptText:
    """An unsent text, and the heading of the panel that it was typed into."""

    panel: str
    text: str
    at: datetime | None = None  # when it was saved


@dataclass(frozen=True, slots=True)
class VerdictVerb:
    """One verdict as a button, with its shortcut."""

    name: str
    label: str
    key: str


VERBS = tuple(
    VerdictVerb(verdict.value, wording.button, wording.key)
    for verdict, wording in VERDICT_WORDINGS.items()
)


class DecisionRegion(HistoryRegion):
    """R8: the verbs or the outcome, and what the person typed."""

    # R8
    @property
    def verbs(self) -> Sequence[VerdictVerb]:
        """The verdicts this person may give now."""
        loaded = self.loaded
        if not loaded.able or self.moved or self.target_moved:
            return ()
        left = loaded.choice.verdicts
        return [verb for verb in VERBS if verb.name in left]

    @property
    def approves(self) -> bool:
        """Whether Approve is offered."""
        return any(verb.name == "approve" for verb in self.verbs)

    @property
    def not_offered(self) -> str:
        """Why a verdict is missing beside the others."""
        left = self.loaded.choice if self.verbs else VerdictChoice()
        return f"{left.why_not_approve} {left.why_not_escalate}".strip()

    @property
    def outcome(self) -> OutcomePanel:
        """R8 where no verb is offered."""
        if self.target_moved:
            return outcomes.build_stale_state_outcome(self.loaded)
        if not self.moved:
            return outcomes.build_outcome(self.loaded)
        return outcomes.build_revised_outcome(self.loaded, self.old)

    @property
    def check_url(self) -> str:
        """Where an edit is previewed before it is committed."""
        return reverse("reviews:decide", args=[self.id]) + "?check=1"

    @cached_property
    def drafts(self) -> list[KeptText]:
        """The person's unsent drafts, the newest first."""
        if not self.loaded.drafted:
            return []
        return [
            KeptText(describe_draft(one.panel), one.reason, one.saved_at)
            for one in drafts.list_drafts(self.loaded.person, self.id)
        ]

    @property
    def kept(self) -> list[KeptText]:
        """The texts that the person typed, for when no verb is left to send them with;
        first the one that was just refused."""
        sent = KeptText(self.kept_for, self.note_kept)
        stored = [one for one in self.drafts if one.text]
        if not sent.text:
            return stored
        return [sent, *(one for one in stored if one.panel != sent.panel)]

    @property
    def may_note(self) -> bool:
        """Whether the person can add a note but not decide."""
        return bool(self.loaded.why_not) and versions.may_add_note(self.loaded)

    @property
    def may_step(self) -> bool:
        """Whether the person has a queue to step through."""
        return permissions.find_deciding_role(self.loaded.person) is not None

    @cached_property
    def remarks(self) -> list[Remark]:
        """The notes that this person may read."""
        return versions.list_remarks(self.loaded) if self.loaded.remarked else []

    @cached_property
    def conversation(self) -> list[ConversationLine]:
        """The messages between people and the agent."""
        return versions.build_conversation(self.loaded)

    @property
    def rounds_left(self) -> int:
        """How often people may still ask or send it back."""
        return self.loaded.dialogue.count_rounds_left(by_agent=False)

    @property
    def writes(self) -> Sequence[MessageButton]:
        """The buttons of messages, beside the verdicts; none where no agent reads."""
        by_person = self.loaded.request.proposal.source == REVERSAL_SOURCE
        if by_person or not self.verbs:
            return ()
        return list_message_buttons(self.loaded)

    @cached_property
    def may_allow(self) -> bool:
        """Whether this person can allow such calls of the run in advance."""
        tool, person = self.loaded.revision.tool, self.loaded.person
        if tool is None or tools.load_definition(tool).standing_grant is None:
            return False
        return issuance.may_issue(person, self.loaded.request, self.loaded.now)

    @cached_property
    def within(self) -> links.BatchLink | None:
        """The batch in which this request waits, or None."""
        tool = self.loaded.revision.tool
        if tool is None:
            return None
        return links.find_batch_link(self.loaded.request, tools.load_definition(tool))

    @cached_property
    def following(self) -> NextProposal | None:
        """What the agent proposed after the end of this request."""
        return next_proposals.find_next_proposal(self.loaded)

    @property
    def watches(self) -> bool:
        """Whether an open page polls for the agent's next proposal."""
        return self.following is None and next_proposals.is_watched(self.loaded)

    @property
    def recall(self) -> bool:
        """Whether this person can recall the approval."""
        return outcomes.may_recall(self.loaded)

    @property
    def retry(self) -> bool:
        """Whether this person can have the failed execution tried again."""
        return outcomes.may_retry(self.loaded)


# The properties that need queries beyond loading the request, by part of the page.
PRELOADED_PARTS = (
    *(
        "banner",
        "halts",
        "escalation",
        "ended_parent",
        "same_actions",
        "policy_change",
        "reverses",
        "guidance",
        "sight",
        "others",
        "approvals_said",
    ),
    *(
        "hidden",
        "remarks",
        "conversation",
        "kept_pages",
        "history",
        "within",
        "drafts",
        "verbs",
        "following",
    ),
)


class ReviewPage(DecisionRegion):
    """One request as this person may see it. A part of the page loads only what it
    prints; `ready` loads all of it."""

    def ready(self) -> None:
        """Load everything the page prints, so that rendering does not wait for a
        query."""
        for name in PRELOADED_PARTS:
            getattr(self, name)

    @property
    def inherited(self) -> bool:
        """Whether it came back with a backup and may already have been decided or
        run."""
        return uncertain.may_have_run(self.loaded.request)

    @cached_property
    def policy_change(self) -> PolicyChange | None:
        """What a policy change since the proposal means for it; None without one, and
        once the request is decided."""
        loaded = self.loaded
        if not loaded.waiting:
            return None
        return banners.find_policy_change([loaded.sealed], loaded.now)

    @cached_property
    def banner(self) -> ChangeBanner | None:
        """What changed while the reader was reading; None if nothing did."""
        read = self.read
        if read is None and self.moved and self.on_screen is not None:
            read = self.on_screen.version
        if self.target_moved:
            return build_stale_state_banner(self.loaded, self._reading)
        if self.remade:
            return build_page_changed_banner(self.version)
        if read is None or read == self.version:
            return None
        return build_revised_banner(self.loaded, read)

    @property
    def says_change(self) -> bool:
        """Whether the refusal itself says that what was read has changed."""
        return isinstance(self.problem, (StaleVersion, PreconditionFailed))
