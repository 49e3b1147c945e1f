"""What a person ticked and opened on the page of a batch, what changed since it was
made, and what speaks against a verdict on exactly these rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from journal import canonical
from journal.errors import FieldError
from policies.documents import ToolDefinition
from policies.money import Money, format_money
from policies.staffing import Shortage
from reviews.batches import decide, similarity
from reviews.effects.wording import format_people

from ..components.choice import describe_shortage
from . import links
from .columns import BatchLine, BatchTableEntry
from .forms import BatchForm
from .links import BatchCost, format_request_count
from .load import LoadedBatch
from .table import compute_total_and_largest


@dataclass(frozen=True, slots=True)
class BatchChanges:
    """The rows that changed since a page was made, and whether the batch is over."""

    rows: tuple[FieldError, ...]
    over: bool

    @property
    def by_request(self) -> dict[str, str]:
        """The sentence to print for each changed row."""
        return {row["path"]: row["message"] for row in self.rows}

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
        rows = (f"{row['path']} {row['message']}" for row in self.rows)
        return canonical.digest(canonical.encode([self.said, *rows])).removeprefix(
            "sha256:"
        )[:16]


def build_batch_changes(loaded: LoadedBatch, marks: Mapping[str, str]) -> BatchChanges:
    """Build the changes from the mark that each row had on the page."""
    if loaded.over:
        return BatchChanges((), over=True)
    return BatchChanges(
        tuple(decide.list_changes_since(marks, [*loaded.members, *loaded.gone])),
        over=False,
    )


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
    return {change["path"]: change["message"] for change in changes}


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

    def sort_entries(self, entries: Iterable[BatchTableEntry]) -> list[BatchTableEntry]:
        """The rows in the order of the page: those that changed come first."""
        return sorted(entries, key=lambda entry: not self.changed.get(entry.id))


def build_selection(loaded: LoadedBatch, form: BatchForm) -> BatchSelection:
    """Build the selection from the submitted form: ticked rows, opened rows and the
    changes that the page already reported."""
    return BatchSelection(
        items=frozenset(form.items),
        made=bool(form.rows),
        opened=tuple(form.opened),
        changed=describe_changes_before(loaded, form.before),
        before=form.before,
        page=form.seen,
    )


def build_fresh_selection(loaded: LoadedBatch, form: BatchForm) -> BatchSelection:
    """Build the selection for rows as they are now.

    Each row that changed since the reader's page was made carries a note, and keeps the
    notes of earlier rebuilds.
    """
    chosen = build_selection(loaded, form)
    news = build_batch_changes(loaded, form.marks) if form.rows else None
    new = news.by_request if news else {}
    before = {pk: form.marks.get(pk, "") for pk in new}
    return replace(
        chosen, changed={**chosen.changed, **new}, before={**before, **chosen.before}
    )


@dataclass(frozen=True)
class TickedRows:
    loaded: LoadedBatch
    selection: BatchSelection
    lines: Sequence[BatchLine]

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
        return [
            member.id for member in self.loaded.members if member.id not in self.ids
        ]

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
            for cost in sum_line_costs(self.loaded.definition, chosen)
        )

    @property
    def too_much(self) -> str:
        """Why the sum is too high for one decision; empty when it is not."""
        batch = self.loaded.definition.batchable
        if (
            not similarity.is_above_batch_limit(self.total, self.loaded.definition)
            or not batch
        ):
            return ""
        most = format_money(batch.total.money) if batch.total else ""
        return f"The total exceeds {most}, the limit for one batch."

    @cached_property
    def in_vain(self) -> list[Shortage]:
        """The shortages of ticked requests that too few could decide then."""
        lacking = (self.loaded.shortages.get(pk) for pk in self.ids)
        return [shortage for shortage in lacking if shortage]

    @property
    def why_not_escalate(self) -> str:
        """The sentence on those that cannot be escalated; empty without any."""
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
        count = format_request_count(self.loaded.definition, len(self.ids))
        return f"{count}, {self.total_said}" if self.total_said else count


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
    read = (line.subject.facts.get("before") for line in lines)
    return links.sum_costs(definition, read)
