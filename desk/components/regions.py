"""Regions R1 to R6 of the review page: what a reviewer reads before they decide.

The same person, version and reading always give the same values, so that the page can
be stored with the decision and rendered again. The regions also say which redacted
values in the agent's texts appear in the clear elsewhere on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import Any

from django.urls import reverse
from django.utils.dateparse import parse_datetime

from journal import ids
from policies import tools
from policies.choices import ExecutionClass, Tier
from policies.models import Person
from policies.money import Money, format_money
from reviews import permissions, redaction
from reviews.effects import changes, describe
from reviews.models import Proposal, RequestVersion, Revision, StateReading
from reviews.presenters import Presentation
from reviews.presenters.common import UNKNOWN_REVERSIBILITY
from reviews.presenters.shapes import Cell, Reversibility, SentencePart, ValueRow
from reviews.presenters.views import GroupView
from reviews.redaction import redactor
from reviews.roles import Permission

BLAST_RADIUS_WORDS = {
    1: "Impact: none",
    2: "Impact: rework",
    3: "Impact: personal data",
    4: "Impact: external systems or people",
    5: "Impact: legal, financial or reputational",
}
UNCLEAR_OUTCOME_WORDS = {
    ExecutionClass.KEYED: "Safe to repeat: the service carries it out only once",
    ExecutionClass.QUERYABLE: "Looked up by its key, then recorded or retried",
    ExecutionClass.OPAQUE: "Never retried: a person records what happened",
}
FLOOR_REASONS = {
    Tier.APPROVE: "Policy requires approval for this tool.",
    Tier.ESCALATE: "Policy requires a supervisor's approval for this tool.",
}


CAUSE_WORDS = {
    "opened": "The agent proposed it",
    "revised": "The agent revised it",
    "modified": "A reviewer changed the arguments",
    "escalated": "A reviewer escalated it",
    "verifier": "A verifier escalated it",
    "recalled": "An approval was undone",
    "returned": "A supervisor returned it with guidance",
    "moved": "A supervisor moved it from another queue",
}


@dataclass(frozen=True)
class VersionChanges:
    number: int
    rows: list[changes.ArgumentChange]
    words: bool  # the agent's words or its evidence changed too
    cause: str = ""  # what made the version of now
    is_now = "Now"

    @property
    def was(self) -> str:
        """The heading of the column with the older version."""
        return f"Version {self.number}"


class Regions:
    """R1 to R6 of one sealed version, for one person.

    `reading` is the newest reading of the business state since the proposal, `since`
    the older version that the person read before this one.
    """

    def __init__(
        self,
        person: Person,
        sealed: RequestVersion,
        *,
        reading: StateReading | None = None,
        since: RequestVersion | None = None,
    ) -> None:
        self.person = person
        self.sealed = sealed
        self.newer_reading = reading
        self.older = since
        self.revision: Revision = sealed.revision
        self.action_hash = self.revision.action_hash
        self.agent, self.thread = self.proposal.agent, self.proposal.thread
        self.proposed_at: datetime = self.revision.created_at
        self.policy = sealed.policy.number

    @property
    def proposal(self) -> Proposal:
        return self.sealed.request.proposal

    @property
    def reading(self) -> Mapping[str, Any]:
        """The reading that the page compares with: the newer one, if any."""
        newer = self.newer_reading
        reading: Mapping[str, Any] = newer.reading if newer else self.revision.reading
        return reading

    # R1 to R3
    @cached_property
    def shown(self) -> Presentation | None:
        """The decoded effect; None when it cannot be presented."""
        return describe.build_presentation(self.revision, self.reading)

    @cached_property
    def warnings(self) -> list[describe.EffectWarning]:
        """What the gate warns of beside the facts; each row of a list says the same."""
        return describe.list_warnings(self.revision, self.shown)

    @property
    def effect(self) -> tuple[SentencePart, ...]:
        return (
            self.shown.sentence
            if self.shown
            else describe.build_effect_sentence(self.revision)
        )

    @property
    def read_from(self) -> str:
        """Where the before-state was read: by the tool's reader, never from the agent.
        Empty without one."""
        reading = self.reading
        if reading.get("before") is None:
            return ""
        at = parse_datetime(str(reading.get("at", "")))
        clock = f" at {at:%H:%M:%S} UTC" if at else ""
        return f"read from {reading.get('source') or 'the tool'}{clock}"

    @property
    def no_before(self) -> str:
        """Why there is no before-state."""
        if self.reading.get("problem"):
            return "The look-up failed. Check the source system yourself."
        return "This tool declares no look-up. Only the proposed arguments are shown."

    @cached_property
    def since(self) -> VersionChanges | None:
        """What differs from the version that the person read before, if any."""
        older = self.older
        if older is None:
            return None
        return VersionChanges(
            older.number,
            changes.list_page_changes(older.revision, self.revision),
            words=_collect_agent_words(older.revision)
            != _collect_agent_words(self.revision),
            cause=CAUSE_WORDS.get(self.sealed.cause, ""),
        )

    @cached_property
    def edited(self) -> VersionChanges | None:
        """What people changed of what the agent proposed last; None without an edit."""
        first = self._written_for
        if first is None:
            return None
        return VersionChanges(
            first.number,
            changes.list_page_changes(first.revision, self.revision),
            words=False,
        )

    @cached_property
    def reversal(self) -> Reversibility:
        return self.shown.reversal if self.shown else UNKNOWN_REVERSIBILITY

    @property
    def declared(self) -> str:
        """Which policy version declares how to undo it."""
        tool = self.revision.tool
        if tool is None:
            return ""
        if tools.load_definition(tool).is_undeclared:
            return "Not in the policy"
        return f"Declared in policy v{self.policy}"

    @property
    def radius(self) -> str:
        """How far the effect reaches, in words."""
        tool = self.revision.tool
        if tool is None:
            return ""
        return BLAST_RADIUS_WORDS[tools.load_definition(tool).profile.blast_radius]

    @property
    def if_unclear(self) -> str:
        """What happens after an attempt without a clear outcome."""
        tool = self.revision.tool
        return (
            UNCLEAR_OUTCOME_WORDS[ExecutionClass(tool.execution_class)] if tool else ""
        )

    # R4, the part that never changes
    @property
    def floor_said(self) -> str:
        """Why a person is asked when no rule matched."""
        return FLOOR_REASONS.get(Tier(self.sealed.tier), "Policy requires approval.")

    @property
    def policy_url(self) -> str:
        """The page of the policy version; empty for a person who may not see it."""
        if not permissions.has_permission(self.person, Permission.SEE_POLICIES):
            return ""
        return reverse("policies:policy", args=[self.policy])

    @property
    def agent_url(self) -> str:
        return reverse("agents:agent", args=[self.agent])

    @property
    def thread_url(self) -> str:
        return reverse("agents:thread", args=[self.agent, self.thread])

    @property
    def parent(self) -> str:
        """The id of the parent call; empty for anything that is not an id, since the
        agent wrote it."""
        named = self.proposal.parent
        return named if ids.is_id(named, "p") else ""

    @cached_property
    def _written_for(self) -> RequestVersion | None:
        """The version that the agent wrote its words for, where a person's edit
        replaced it; None where the words belong to this version."""
        if self.revision.author_kind != "person":
            return None
        return (
            RequestVersion.objects.filter(
                request=self.sealed.request_id, number__lt=self.sealed.number
            )
            .exclude(revision__author_kind="person")
            .select_related("request__proposal", "revision__tool")
            .order_by("-number")
            .first()
        )

    @property
    def said_at(self) -> datetime:
        """When the agent wrote its words."""
        first = self._written_for
        return first.revision.created_at if first else self.proposed_at

    @property
    def written_for(self) -> str:
        """`written for version 1 (899.00)`; empty if for this version."""
        first = self._written_for
        if first is None:
            return ""
        minor, currency = first.revision.amount_minor, first.revision.currency
        amount = ""
        if currency and minor is not None and minor != self.revision.amount_minor:
            amount = f" ({format_money(Money(minor, currency))})"
        return f"written for version {first.number}{amount}"

    # R5, R6: redacted before it is stored; only the `untrusted` tag prints it
    @property
    def rationale(self) -> str:
        """The agent's reason: untrusted."""
        return self.revision.rationale

    @property
    def removal(self) -> str:
        """That the retention rule removed it; empty if it did not."""
        return self.revision.removal

    @property
    def by_person(self) -> bool:
        """Whether a person wrote the words, in a proposal to undo an effect."""
        return describe.is_by_person(self.proposal)

    @cached_property
    def claims(self) -> list[tuple[str, str]]:
        """The agent's other texts by heading: untrusted."""
        return describe.list_agent_claims(self.proposal, self.revision)

    @cached_property
    def evidence(self) -> list[describe.EvidenceItem]:
        """The evidence that the agent attached: untrusted."""
        return describe.list_evidence(self.revision)

    @cached_property
    def same(self) -> dict[str, str]:
        """Labels of redaction chips in the words whose value this page also shows."""
        if self.shown is None:
            return {}
        texts = [self.rationale, *(text for _, text in self.claims)]
        texts += [item.text for item in self.evidence]
        same: dict[str, str] = {}
        for key in redactor.list_thread_keys(self.agent, self.thread):
            same = label_equal_values(self.shown, texts, key) | same
        return same

    @property
    def redactions(self) -> int:
        """How many values of the evidence are redacted."""
        return sum(item.redactions for item in self.evidence)


def _collect_agent_words(revision: Revision) -> tuple[Any, ...]:
    return (
        revision.rationale,
        revision.expected_outcome,
        revision.reversal,
        revision.alternatives,
        revision.evidence,
    )


LONGEST_VALUE = 200  # characters; a longer value is neither an address nor a number
MOST_VALUES = 200  # the first values of a page
# The headings of the columns of the comparison.
AFTER, BEFORE, CURRENT = "after", "before", "in the current record"


def label_equal_values(
    shown: Presentation, texts: Iterable[str], key: bytes
) -> dict[str, str]:
    """The chips in these texts that match a value on the page, each with that value's
    label.

    `key` is the redaction key of the run. The proposed value is preferred over the one
    it replaces. A tag that two different values of the page share gets no label.
    """
    wanted = {chip for text in texts for chip in redaction.list_chips(text)}
    labels: dict[str, str] = {}
    forms: dict[str, set[str]] = {}
    for label, value in islice(_list_page_values(shown), MOST_VALUES) if wanted else ():
        for chip, form in redaction.build_possible_chips(value, key).items():
            if chip in wanted:
                labels.setdefault(chip, label)
                forms.setdefault(chip, set()).add(form)
    return {chip: label for chip, label in labels.items() if len(forms[chip]) == 1}


def _list_page_values(shown: Presentation) -> Iterator[tuple[str, str]]:
    """The values shown in the clear, with their labels: proposed first, then unchanged,
    then previous."""
    for change in shown.changes:
        yield from _list_clear_value(f"{change.label} {AFTER}", change.after)
    groups = (view.rows for view in shown.views if isinstance(view, GroupView))
    for rows in (shown.other, *groups, shown.unchanged):
        yield from _list_row_values(rows)
    for change in shown.changes:
        yield from _list_clear_value(f"{change.label} {BEFORE}", change.before)
    for rows in (shown.top, shown.now):
        yield from _list_row_values(rows, f" {CURRENT}")


def _list_row_values(
    rows: Iterable[ValueRow], more: str = ""
) -> Iterator[tuple[str, str]]:
    for row in rows:
        yield from _list_clear_value(row.label + more, row.cell)


def _list_clear_value(label: str, cell: Cell | None) -> Iterator[tuple[str, str]]:
    """The value, unless it is concealed, empty or too long."""
    if cell is not None and not cell.hides and 0 < len(cell.text) <= LONGEST_VALUE:
        yield label, cell.text
