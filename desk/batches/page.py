"""The page of a batch that waits, for one person who may decide it.

Holds the selection with its digest and sum, the facts that all members share, the
agent's rationales, and what changed since the page was made. The form repeats the mark
that a changed row had before, so that the next response reports the change again, and
a signed token that says since when the rows have been on the screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

from django.urls import reverse

from journal import canonical
from journal.errors import BatchChanged, DomainError, FieldError
from policies.documents import ToolDefinition
from policies.money import Money, format_money
from policies.staffing import Shortage
from reviews.batches import decide, similarity
from reviews.batches.membership import BatchMember
from reviews.choices import BatchStatus
from reviews.decisions import submission
from reviews.decisions.submission import PageToken
from reviews.effects.wording import format_people, format_required_people
from reviews.presenters.common import build_reversibility
from reviews.presenters.shapes import Reversibility, SentencePart

from ..components import banners, formatting, states, undo
from ..components.banners import PolicyChange
from ..components.choice import describe_shortage
from ..components.formatting import DeadlineClock
from ..components.states import EndedParent
from ..components.undo import ReversedEffect
from . import links
from . import table as batches_table
from .columns import BatchLine, BatchTable, BatchTableEntry
from .links import BatchCost, build_batch_title, format_request_count
from .load import LoadedBatch
from .table import (
    BatchPeek,
    BatchRow,
    OpenedBatchRow,
    build_line,
    build_peek,
    build_table,
    compute_total_and_largest,
    format_sent_row,
)


@dataclass(frozen=True, slots=True)
class BatchChanges:
    """The rows that changed since a page was made, and whether the batch is over."""

    rows: tuple[FieldError, ...]
    over: bool

    @property
    def by_request(self) -> dict[str, str]:
        """The sentence to print for each changed row."""
        return {one["path"]: one["message"] for one in self.rows}

    @property
    def said(self) -> str:
        """One sentence about all changes; empty when there are none."""
        if self.over:
            return "This batch can no longer be decided. Nothing will be recorded."
        if not self.rows:
            return ""
        items = format_people(len(self.rows), "item")
        return f"{items} changed, left or joined since you opened this page."

    @property
    def etag(self) -> str:
        said = [self.said, *(f"{one['path']} {one['message']}" for one in self.rows)]
        return canonical.digest(canonical.encode(said)).removeprefix("sha256:")[:16]


def build_batch_changes(loaded: LoadedBatch, marks: Mapping[str, str]) -> BatchChanges:
    """Build the changes from the mark that each row had on the page."""
    if loaded.over:
        return BatchChanges((), over=True)
    return BatchChanges(
        tuple(decide.list_changes_since(marks, [*loaded.members, *loaded.gone])),
        over=False,
    )


@dataclass(frozen=True, slots=True)
class BatchSelection:
    """What a page sent: ticked rows, opened rows and the changes it had reported.

    Without `made` the person has not chosen yet, so every row is ticked.
    """

    items: frozenset[str] = frozenset()
    made: bool = False
    opened: tuple[str, ...] = ()
    open_now: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)  # marks of changed rows
    page: str = ""  # the token of the page that was submitted


class TickedRows:
    """The ticked rows: their digest, their sum and what speaks against a verdict."""

    def __init__(
        self, loaded: LoadedBatch, selection: BatchSelection, lines: Sequence[BatchLine]
    ) -> None:
        self.loaded = loaded
        self.selection = selection
        self.lines = lines
        self.definition = loaded.definition

    @cached_property
    def ids(self) -> list[str]:
        """The requests to decide, in the order of the batch."""
        able = self.loaded.choosable
        if not self.selection.made:
            return able
        return [pk for pk in able if pk in self.selection.items]

    @cached_property
    def left_out(self) -> list[str]:
        """The members that are not ticked, or that this person cannot decide."""
        return [one.id for one in self.loaded.members if one.id not in self.ids]

    @property
    def left_out_said(self) -> str:
        """The sentence on the members that are not selected; empty without any."""
        return describe_left_out(len(self.left_out))

    @cached_property
    def digest(self) -> str:
        """The digest of exactly the ticked list."""
        chosen = set(self.ids)
        return similarity.compute_list_digest(
            member.entry for member in self.loaded.members if member.id in chosen
        )

    @cached_property
    def total(self) -> Money | None:
        """The sum of the amounts; None without money."""
        chosen = set(self.ids)
        amounts = (line.amount for line in self.lines if line.id in chosen)
        return compute_total_and_largest(amounts)[0]

    @property
    def total_said(self) -> str:
        """The sum of the amounts or costs as text; empty where neither is known."""
        if self.total:
            return format_money(self.total)
        chosen = [line for line in self.lines if line.id in set(self.ids)]
        return ", ".join(
            cost.said
            if cost.known == len(chosen)
            else f"{cost.said} for {cost.known} of them"
            for cost in sum_line_costs(self.definition, chosen)
        )

    @property
    def too_much(self) -> str:
        """Why the sum is too high for one decision; empty when it is not."""
        batch = self.definition.batchable
        if (
            not similarity.is_above_batch_limit(self.total, self.definition)
            or not batch
        ):
            return ""
        most = format_money(batch.total.money) if batch.total else ""
        return f"The total exceeds {most}, the limit for one batch."

    @cached_property
    def in_vain(self) -> list[Shortage]:
        """The shortages of the ticked requests that too few people could decide once
        they are escalated."""
        lacking = (self.loaded.lacking(pk) for pk in self.ids)
        return [one for one in lacking if one]

    @property
    def why_not_escalate(self) -> str:
        """The sentence on the requests that cannot be escalated; empty when all can
        be."""
        if not self.in_vain:
            return ""
        many, of = len(self.in_vain), len(self.ids)
        which = "any of these items" if many == of else f"{many} of these items"
        return describe_shortage(self.in_vain[0], which)

    @property
    def escalates(self) -> bool:
        """Whether an escalation would be accepted for at least one of them."""
        return not self.ids or len(self.in_vain) < len(self.ids)

    @property
    def what(self) -> str:
        """`36 refunds, 1,788.20 USD`: the text on the commit button."""
        said = format_request_count(self.definition, len(self.ids))
        return f"{said}, {self.total_said}" if self.total_said else said


def describe_left_out(count: int) -> str:
    """Describe what happens to members that are not selected; empty for none."""
    if not count:
        return ""
    which = (
        "1 unselected item stays" if count == 1 else f"{count} unselected items stay"
    )
    return f"{which} in the queue."


def sum_line_costs(
    definition: ToolDefinition, lines: Iterable[BatchLine]
) -> list[BatchCost]:
    """Sum what these rows cost, by their readings."""
    read = (line.subject.facts.get("before") for line in lines)
    return links.sum_costs(definition, read)


class BatchFacts:
    """The facts that are equal for all members, printed once."""

    def __init__(self, loaded: LoadedBatch) -> None:
        self.loaded = loaded
        self.count = len(loaded.members)
        self.agent = loaded.batch.agent
        self.tool = loaded.batch.tool.name
        self.tool_version = loaded.batch.tool.version

    @cached_property
    def first(self) -> BatchMember:
        return self.loaded.members[0]

    @property
    def risk(self) -> str:
        return self.first.version.risk

    @property
    def policy(self) -> int:
        return self.first.version.policy.number

    @cached_property
    def policy_change(self) -> PolicyChange | None:
        """What a policy change since the proposals means for them; None without one."""
        if self.loaded.over or self.loaded.told is not None:
            return None
        versions = (one.version for one in self.loaded.members)
        return banners.find_policy_change(versions, self.loaded.now)

    @property
    def rules(self) -> list[str]:
        said = [rule["text"] for rule in self.first.version.rules]
        return said or ["Policy requires approval for this tool."]

    @property
    def asked(self) -> str:
        """The approvals that each member needs: `1 reviewer`."""
        return format_required_people(self.first.version.steps)

    @property
    def proposed(self) -> tuple[datetime, datetime]:
        """When the first and the last member were opened."""
        times = [member.request.opened_at for member in self.loaded.members]
        return min(times), max(times)

    @property
    def reversal(self) -> Reversibility:
        return build_reversibility(self.loaded.definition)

    @property
    def clock(self) -> DeadlineClock:
        """The earliest deadline, which applies to the whole batch."""
        first = min(self.loaded.members, key=lambda member: member.request.expires_at)
        return formatting.build_request_clock(first.request, self.loaded.now)

    @property
    def forming_until(self) -> datetime | None:
        """Until when others may still join; None when the batch is closed."""
        batch = self.loaded.batch
        return batch.closes_at if batch.status == BatchStatus.FORMING else None


def describe_changes_before(
    loaded: LoadedBatch, before: Mapping[str, str]
) -> dict[str, str]:
    """Describe by request what an earlier page reported as changed.

    `before` holds the mark that each row had on the page before that one; an empty mark
    stands for a row that was not there.
    """
    members = [member for member in loaded.members if member.id in before]
    marks = {member.id: before[member.id] for member in members if before[member.id]}
    changes = decide.list_changes_since(marks, members)
    return {one["path"]: one["message"] for one in changes}


def create_timing_token(loaded: LoadedBatch, before: str) -> str:
    """Sign since when the page is on the screen, for a hidden field. `before` is the
    token that the browser sent; a page rebuilt with the same rows keeps its start."""
    made = _build_page_token(loaded, loaded.marks)
    sent = submission.find_page_token(before)
    return (made.read_since(sent) if sent else made).token()


def compute_took_ms(
    loaded: LoadedBatch, marks: Mapping[str, str], sent: str
) -> int | None:
    """Compute how long a page with these rows was on the screen, in milliseconds.

    None if the token is not ours or belongs to another page.
    """
    page, ours = submission.find_page_token(sent), _build_page_token(loaded, marks)
    if page is None or not page.is_for(ours.person, ours.request):
        return None
    return page.took_ms(loaded.now) if page.digest == ours.digest else None


def _build_page_token(loaded: LoadedBatch, marks: Mapping[str, str]) -> PageToken:
    return PageToken(
        person=loaded.person.public_id,
        request=loaded.batch.pk,
        version=0,  # a batch has no version; the digest covers its rows' versions
        action_hash="",
        digest=canonical.digest(canonical.encode(dict(marks))),
        rendered_at=loaded.now,
    )


MAX_RATIONALE = 280  # characters of a rationale that differs from the usual one


@dataclass(frozen=True, slots=True)
class DifferentRationale:
    """The agent's rationale for a member, where it differs from the usual one."""

    id: str
    label: str
    text: str


class BatchRationales:
    """The agent's rationales: untrusted text, to be printed as such. `labels` name the
    members."""

    def __init__(
        self, members: Sequence[BatchMember], labels: Mapping[str, str]
    ) -> None:
        self._labels = labels
        self._texts = [
            (member.id, member.version.revision.rationale) for member in members
        ]

    @cached_property
    def rationale(self) -> str:
        """The rationale that most members share."""
        return Counter(text for _, text in self._texts).most_common(1)[0][0]

    @property
    def identical(self) -> int:
        """The number of members with that rationale."""
        return sum(text == self.rationale for _, text in self._texts)

    @cached_property
    def different(self) -> list[DifferentRationale]:
        return [
            DifferentRationale(
                pk,
                self._labels[pk],
                text[:MAX_RATIONALE] + (" […]" if len(text) > MAX_RATIONALE else ""),
            )
            for pk, text in self._texts
            if text != self.rationale
        ]


class BatchPage:
    """The page model: shared facts, the table, the selection and the armed panel."""

    kept = False  # True for page evidence, which is read-only

    def __init__(
        self,
        loaded: LoadedBatch,
        selection: BatchSelection | None = None,
        *,
        armed: Any = None,
        problem: DomainError | None = None,
        focus: str = "",
    ) -> None:
        self.loaded = loaded
        self.selection = selection or BatchSelection()
        self.armed = armed
        self.problem = problem
        self.focus = focus
        self.news: BatchChanges | None = None  # changes since the rows were rendered
        self.id = loaded.batch.pk
        self.url = reverse("reviews:batch", args=[self.id])
        self.decide_url = reverse("reviews:batch_decide", args=[self.id])
        self.definition = loaded.definition
        self.facts = BatchFacts(loaded)

    @property
    def title(self) -> tuple[SentencePart, ...]:
        total, largest = compute_total_and_largest(line.amount for line in self.lines)
        found = sum_line_costs(self.definition, self.lines)
        return build_batch_title(
            self.definition, len(self.lines), total, largest, found
        )

    @cached_property
    def choice(self) -> TickedRows:
        return TickedRows(self.loaded, self.selection, self.lines)

    @cached_property
    def words(self) -> BatchRationales:
        labels = {row.id: row.first.text if row.first else "" for row in self.rows}
        return BatchRationales(self.loaded.members, labels)

    @cached_property
    def lines(self) -> list[BatchLine]:
        return [build_line(member) for member in self.loaded.members]

    @cached_property
    def table(self) -> BatchTable:
        batch = self.definition.batchable
        return build_table(self.lines, batch.varying if batch else ())

    @cached_property
    def rows(self) -> list[BatchRow]:
        """Every member: first the rows that changed, then the outliers, then the others
        in the order in which they will run."""
        by_id = {member.id: member for member in self.loaded.members}
        found = [self._row(by_id[entry.id], entry) for entry in self.table.entries]
        return sorted(found, key=lambda row: not row.changed)

    def _row(self, member: BatchMember, entry: BatchTableEntry) -> BatchRow:
        since = member.request.with_agent_since
        return BatchRow(
            id=member.id,
            url=reverse("reviews:batch_item", args=[self.id, member.id]),
            sent=format_sent_row(member),
            before=self._format_mark_before(member),
            first=entry.cells[0] if entry.cells else None,
            reverses=self.reverses.get(member.request.proposal_id),
            others=list(zip(self.table.columns, entry.cells, strict=True))[1:],
            reasons=entry.reasons,
            changed=self.selection.changed.get(member.id, ""),
            blocked=self.loaded.blocked(member),
            with_agent=states.format_with_agent(since) if since else "",
            parent_ended=self._describe_ended_parent(member),
            checked=member.id in self.choice.ids,
            sample=member.id in self.samples,
            peek=self._peek(member),
        )

    def _describe_ended_parent(self, member: BatchMember) -> str:
        found = self.ended_parents.get(member.request.proposal.parent)
        return f"The call that it is part of {found.said}" if found else ""

    @cached_property
    def ended_parents(self) -> dict[str, EndedParent]:
        """The parents of members that ended without running."""
        members = self.loaded.members
        return states.list_ended_parents(one.request.proposal for one in members)

    @cached_property
    def reverses(self) -> dict[str, ReversedEffect]:
        """The effects that members undo, by proposal, where people proposed the
        reversal."""
        members = self.loaded.members
        return undo.group_reversals(member.request.proposal for member in members)

    def _format_mark_before(self, member: BatchMember) -> str:
        """Format the mark that a changed row had before, for a hidden field."""
        mark = self.selection.before.get(member.id)
        return "" if mark is None or self.kept else f"{member.id}~{mark}"

    def _peek(self, member: BatchMember) -> BatchPeek | None:
        """The opened view of a member. It keeps the time at which it was first
        opened."""
        if member.id in self.opened:
            return build_peek(self.loaded, member, self.opened[member.id].at)
        if member.id in self.selection.open_now:
            return build_peek(self.loaded, member)
        return None

    @property
    def token(self) -> str:
        """The signed time since when these rows have been on the screen."""
        return create_timing_token(self.loaded, self.selection.page)

    @property
    def gone(self) -> list[tuple[str, str]]:
        """The requests that left the batch since, with the reason: they have no row."""
        known = set(self.loaded.marks)
        return [
            (reverse("reviews:request_detail", args=[pk]), why)
            for pk, why in self.selection.changed.items()
            if pk not in known and pk.startswith("r-")
        ]

    @property
    def pinned(self) -> bool:
        """Whether the problem concerns rows and is therefore printed above them."""
        return isinstance(self.problem, BatchChanged) and bool(self.problem.errors)

    @property
    def span(self) -> int:
        """The number of cells in a row: the checkbox, the columns, the reasons,
        Open."""
        return max(len(self.table.columns), 1) + 3

    @property
    def samples_said(self) -> str:
        left, count = len(self.unopened), len(self.samples)
        return f"{count - left} of {count} samples opened"

    @cached_property
    def samples(self) -> list[str]:
        return batches_table.pick_samples(
            self.id, self.loaded.choosable, self.table.outliers
        )

    @cached_property
    def opened(self) -> dict[str, OpenedBatchRow]:
        return batches_table.read_opened_tokens(
            self.selection.opened,
            batch=self.id,
            person=self.loaded.person.public_id,
            marks=self.loaded.marks,
        )

    @property
    def unopened(self) -> list[BatchRow]:
        """The samples that are still to be opened, in the order of the page."""
        return [row for row in self.rows if row.sample and row.peek is None]
