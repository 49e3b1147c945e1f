"""A batch that waits, as one person may decide it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.urls import reverse

from journal.errors import BatchChanged, DomainError
from reviews.batches.membership import Member
from reviews.desk.components import undo
from reviews.desk.components.undo import Reverses
from reviews.presenters.shapes import Part
from reviews.queries.batches import notes, timing
from reviews.queries.batches import samples as batches_samples
from reviews.queries.batches.changes import News
from reviews.queries.batches.choice import Choice, Selection, costs_of
from reviews.queries.batches.facts import Facts
from reviews.queries.batches.samples import Opened
from reviews.queries.batches.table import build, total_of
from reviews.queries.batches.titles import title as titles_title
from reviews.queries.batches.words import Words

from .columns import Entry, Line, Table
from .load import Loaded
from .table import Peek, Row, line_of, peek_of, sent_of


class BatchPage:
    """What is the same for all, the table, what is ticked, and what is armed."""

    kept = False  # whether it is one that was decided on, to be read only

    def __init__(
        self,
        loaded: Loaded,
        selection: Selection | None = None,
        *,
        armed: Any = None,
        problem: DomainError | None = None,
        focus: str = "",
    ) -> None:
        self.loaded = loaded
        self.selection = selection or Selection()
        self.armed = armed
        self.problem = problem
        self.focus = focus
        self.news: News | None = None  # since the rows on the screen were made
        self.id = loaded.batch.pk
        self.url = reverse("reviews:batch", args=[self.id])
        self.decide_url = reverse("reviews:batch_decide", args=[self.id])
        self.definition = loaded.definition
        self.facts = Facts(loaded)

    @property
    def title(self) -> tuple[Part, ...]:
        total, largest = total_of(line.amount for line in self.lines)
        found = costs_of(self.definition, self.lines)
        return titles_title(self.definition, len(self.lines), total, largest, found)

    @cached_property
    def choice(self) -> Choice:
        return Choice(self.loaded, self.selection, self.lines)

    @cached_property
    def words(self) -> Words:
        labels = {row.id: row.first.text if row.first else "" for row in self.rows}
        return Words(self.loaded.members, labels)

    # The table
    @cached_property
    def lines(self) -> list[Line]:
        return [line_of(member) for member in self.loaded.members]

    @cached_property
    def table(self) -> Table:
        batch = self.definition.batchable
        return build(self.lines, batch.varying if batch else ())

    @cached_property
    def rows(self) -> list[Row]:
        """Every member: what changed under the reader, then what stands out, then in
        the order in which they will run."""
        by_id = {member.id: member for member in self.loaded.members}
        found = [self._row(by_id[entry.id], entry) for entry in self.table.entries]
        return sorted(found, key=lambda row: not row.changed)

    def _row(self, member: Member, entry: Entry) -> Row:
        return Row(
            id=member.id,
            url=reverse("reviews:batch_item", args=[self.id, member.id]),
            sent=sent_of(member),
            noted=self._noted(member),
            first=entry.cells[0] if entry.cells else None,
            reverses=self.reverses.get(member.request.proposal_id),
            others=list(zip(self.table.columns, entry.cells, strict=True))[1:],
            reasons=entry.reasons,
            changed=self.selection.changed.get(member.id, ""),
            blocked=self.loaded.blocked(member),
            checked=member.id in self.choice.ids,
            sample=member.id in self.samples,
            peek=self._peek(member),
        )

    @cached_property
    def reverses(self) -> dict[str, Reverses]:
        """What members undo that people proposed for that, by proposal."""
        members = self.loaded.members
        return undo.reversed_by(member.request.proposal for member in members)

    def _noted(self, member: Member) -> str:
        """So that what changed under the reader stays said at the next press."""
        said = self.selection.changed.get(member.id, "")
        if not said or self.kept:
            return ""
        return notes.token(self._whose, member.id, member.mark, said)

    @property
    def _whose(self) -> tuple[str, str]:
        return self.id, self.loaded.person.public_id

    def _peek(self, member: Member) -> Peek | None:
        """What was opened stays open; its first moment counts."""
        if member.id in self.opened:
            return peek_of(self.loaded, member, self.opened[member.id].at)
        if member.id in self.selection.open_now:
            return peek_of(self.loaded, member)
        return None

    @property
    def token(self) -> str:
        """Since when these rows have been on the screen."""
        return timing.token(self.loaded, self.selection.page)

    @property
    def gone(self) -> list[tuple[str, str]]:
        """Who left since: changed rows that cannot be shown as rows any more."""
        known = set(self.loaded.marks)
        return [
            (reverse("reviews:request_detail", args=[pk]), why)
            for pk, why in self.selection.changed.items()
            if pk not in known and pk.startswith("r-")
        ]

    @property
    def pinned(self) -> bool:
        """Whether what is wrong is about rows, and so is said above them."""
        return isinstance(self.problem, BatchChanged) and bool(self.problem.errors)

    @property
    def span(self) -> int:
        """How many cells a row has: the tick, the columns, what stands out, Open."""
        return max(len(self.table.columns), 1) + 3

    @property
    def samples_said(self) -> str:
        left, count = len(self.unopened), len(self.samples)
        return f"{count - left} of {count} samples opened"

    # The samples
    @cached_property
    def samples(self) -> list[str]:
        return batches_samples.picked(
            self.id, self.loaded.choosable, self.table.outliers
        )

    @cached_property
    def opened(self) -> dict[str, Opened]:
        return batches_samples.read(
            self.selection.opened,
            batch=self.id,
            person=self.loaded.person.public_id,
            marks=self.loaded.marks,
        )

    @property
    def unopened(self) -> list[Row]:
        """The samples that are still to be opened, in the order of the page."""
        return [row for row in self.rows if row.sample and row.peek is None]
