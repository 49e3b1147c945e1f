"""The table of a batch, its rows, and the rows that must be opened.

Equal values are printed once, differing ones become columns, and outliers come first. A
member is a row of the table and can be opened in it. Some rows must be opened before an
approval: the gate picks these samples by a keyed hash, so that neither the agent nor
the reviewer can predict them.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core import signing
from django.urls import reverse
from django.utils.dateparse import parse_datetime

from journal.errors import NotFound
from policies.documents import ToolDefinition
from policies.money import Money
from reviews.batches.membership import BatchMember
from reviews.effects import describe
from reviews.models import Revision
from reviews.presenters import Presentation
from reviews.presenters.amounts import build_count_changes
from reviews.presenters.arguments import sort_by_schema
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Cell, Tag, ValueRow

from ..components.undo import ReversedEffect
from . import columns
from .columns import (
    BatchColumn,
    BatchConstant,
    BatchLine,
    BatchTable,
    BatchTableEntry,
    ColumnValue,
    build_distribution,
)
from .load import LoadedBatch

OPENED_SALT = "reviews.opened"
SMALL_BATCH = 20  # items; a larger batch has more samples
OF_SMALL, OF_LARGE = 3, 5


def pick_samples(
    batch: str, requests: Sequence[str], outliers: Sequence[str]
) -> list[str]:
    """Pick the samples, in no particular order: outliers first, then by keyed hash."""
    count = OF_SMALL if len(requests) <= SMALL_BATCH else OF_LARGE
    odd = [one for one in outliers if one in requests]
    others = [one for one in requests if one not in odd]
    others.sort(key=lambda one: _compute_lot(batch, one))
    return [*odd, *others][:count]


def _compute_lot(batch: str, request: str) -> bytes:
    text = f"sample|{batch}|{request}".encode()
    return hmac.digest(settings.COUNTERSEAL.tag_key, text, "sha256")


@dataclass(frozen=True, slots=True)
class OpenedBatchRow:
    """One row that was opened: its mark at that time, and when."""

    request: str
    mark: str
    at: datetime


def create_opened_token(
    *, batch: str, person: str, request: str, mark: str, at: datetime
) -> str:
    """Sign that a row was opened; the token is bound to person, batch and content."""
    said = [batch, person, request, mark, at.isoformat()]
    return signing.dumps(said, salt=OPENED_SALT)


def read_opened_tokens(
    tokens: Iterable[str], *, batch: str, person: str, marks: Mapping[str, str]
) -> dict[str, OpenedBatchRow]:
    """Read which rows were opened as they are now. The first opening of each counts."""
    found: dict[str, OpenedBatchRow] = {}
    for text in tokens:
        one = _parse_opened_token(text, batch, person)
        if one is not None and marks.get(one.request) == one.mark:
            found.setdefault(one.request, one)
    return found


def _parse_opened_token(text: str, batch: str, person: str) -> OpenedBatchRow | None:
    try:
        of, by, request, mark, at = signing.loads(text, salt=OPENED_SALT)
    except (signing.BadSignature, ValueError, TypeError):
        return None
    moment = parse_datetime(str(at))
    if (of, by) != (batch, person) or moment is None:
        return None
    return OpenedBatchRow(request, mark, moment)


def build_opened_record(
    opened: Mapping[str, OpenedBatchRow], now: datetime
) -> dict[str, dict[str, Any]]:
    """Build the record for the decision: the seconds that each opened row was in view.

    A row counts until the next one was opened, or until the commit. The page cannot
    know any better how long somebody read it.
    """
    rows = sorted(opened.values(), key=lambda one: one.at)
    ends = [*(one.at for one in rows[1:]), now]
    return {
        one.request: {"opened": True, "seconds": _to_whole_seconds(end - one.at)}
        for one, end in zip(rows, ends, strict=False)
    }


def _to_whole_seconds(span: timedelta) -> int:
    return max(int(span.total_seconds()), 0)


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One member as a row of the table."""

    id: str
    url: str
    sent: str  # what the form sends for it, as `format_sent_row` formats it
    before: str  # the mark that it had before it changed
    first: Cell | None  # the cell that tells it from the others
    reverses: ReversedEffect | None  # the effect that it undoes
    others: Sequence[tuple[BatchColumn, Cell]]
    reasons: Sequence[str]
    changed: str
    blocked: str
    with_agent: str  # that people have sent it back to the agent; empty if not
    parent_ended: str  # that the call it is part of ended without running
    checked: bool
    sample: bool
    peek: BatchPeek | None  # None until it is opened


@dataclass(frozen=True, slots=True)
class BatchPeek:
    """Regions R1 to R3 of one member, opened in the table."""

    id: str
    url: str
    shown: Presentation | None
    rest: Sequence[tuple[str, Cell]]  # the arguments that are in no change
    at: datetime
    token: str

    @property
    def current(self) -> tuple[ValueRow, ...]:
        """The state from the reader that no argument refers to."""
        return (*self.shown.top, *self.shown.now) if self.shown else ()


def build_line(member: BatchMember) -> BatchLine:
    """Build the table's input from a member, with the values and tags of its view."""
    revision = member.version.revision
    shown = describe.build_presentation(revision, find_reading(member))
    return BatchLine(
        id=member.id,
        subject=build_subject(revision, member.definition, find_reading(member)),
        amount=find_amount(member),
        tags=shown.tags if shown else (),
    )


def build_subject(
    revision: Revision,
    definition: ToolDefinition,
    reading: Mapping[str, Any] | None = None,
) -> Subject:
    """Build the arguments as the presenter reads them: labels, types and hidden values.

    `reading` supplies the record and its facts; it defaults to the revision's own
    reading.
    """
    known = reading or revision.reading
    return Subject(
        definition,
        sort_by_schema(revision.args, definition.arguments),
        before=known.get("before"),
        labels=known.get("labels", {}),
        facts=describe.collect_facts(revision, reading),
        conceal=describe.build_concealer(revision),
    )


def format_sent_row(member: BatchMember) -> str:
    """Format what the form sends for a row: request, mark, version and reading."""
    reading = member.reading.pk if member.reading else ""
    return f"{member.id}~{member.mark}~{member.version.number}~{reading}"


def find_reading(member: BatchMember) -> Mapping[str, Any] | None:
    return member.reading.reading if member.reading else None


def build_peek(
    loaded: LoadedBatch, member: BatchMember, at: datetime | None = None
) -> BatchPeek:
    """Build the opened view of one member, with the token that it was opened. `at` is
    when; it defaults to now."""
    revision = member.version.revision
    shown = describe.build_presentation(revision, find_reading(member))
    subject = build_subject(revision, member.definition)
    told = {change.path for change in shown.changes} if shown else set()
    return BatchPeek(
        id=member.id,
        url=reverse("reviews:request_detail", args=[member.id]),
        shown=shown,
        rest=[
            (subject.label(leaf.path), subject.cell(leaf))
            for leaf in subject.leaves
            if leaf.path not in told
        ],
        at=at or loaded.now,
        token=_create_member_token(loaded, member, at or loaded.now),
    )


def _create_member_token(loaded: LoadedBatch, member: BatchMember, at: datetime) -> str:
    return create_opened_token(
        batch=loaded.batch.pk,
        person=loaded.person.public_id,
        request=member.id,
        mark=loaded.marks[member.id],
        at=at,
    )


def load_peek(loaded: LoadedBatch, request_id: str) -> BatchPeek:
    """Find a member by request and open it. Raises NotFound if it is no member."""
    for member in loaded.members:
        if member.id == request_id:
            return build_peek(loaded, member)
    raise NotFound


def find_amount(member: BatchMember) -> Money | None:
    """Find the amount that a member moves; None without money."""
    revision = member.version.revision
    minor = revision.amount_minor
    return None if minor is None else Money(minor, revision.currency)


MAX_SPLIT_VALUES = 8  # of a column by which a batch can be split


def build_table(lines: Sequence[BatchLine], varying: Sequence[str]) -> BatchTable:
    """Build the table of similar members, which all have the same tool. Runs no
    query."""
    found = [
        columns.build_column(path, lines)
        for path in columns.list_differing_paths(lines, varying)
    ]
    facts, same = columns.build_fact_columns(lines)
    shown = [*found, *facts]
    shared = _list_shared_tags(lines)
    entries = [
        BatchTableEntry(
            line.id,
            [columns.build_cell(line, column) for column in shown],
            list(columns.list_outlier_reasons(line, found, shared)),
        )
        for line in lines
    ]
    return BatchTable(
        columns=shown,
        constants=[
            *columns.list_constants(lines, found),
            *same,
            *_list_shared_counts(lines),
        ],
        entries=sorted(entries, key=lambda entry: -len(entry.reasons)),
        spreads=[build_distribution(column) for column in found if column.numeric],
        splits=list(_build_splits(shown, entries)),
        tags=shared,
    )


def _list_shared_tags(lines: Sequence[BatchLine]) -> list[Tag]:
    """The tags that all members' views have; the page prints them once."""
    common = set(lines[0].tags).intersection(*(set(line.tags) for line in lines))
    return [tag for tag in lines[0].tags if tag in common]


def _list_shared_counts(lines: Sequence[BatchLine]) -> list[BatchConstant]:
    """The numeric changes that are equal in all members: `0 → 1`."""
    moves = [list(build_count_changes(line.subject)) for line in lines]
    return [
        BatchConstant(one.label, Cell(f"{one.before.said} → {one.after.said}"))
        for one in moves[0]
        if one.before and one.after and all(one in others for others in moves)
    ]


def _build_splits(
    among: Sequence[BatchColumn], entries: Sequence[BatchTableEntry]
) -> Iterator[tuple[BatchColumn, Sequence[ColumnValue]]]:
    """The columns with few values, by which a person can split the batch."""
    for at, column in enumerate(among):
        having: dict[Cell, list[str]] = {}
        for entry in entries:
            having.setdefault(entry.cells[at], []).append(entry.id)
        if column.numeric or not 2 <= len(having) <= min(
            MAX_SPLIT_VALUES, len(entries) - 1
        ):
            continue
        pairs = sorted(having.items(), key=lambda pair: -len(pair[1]))
        yield (
            column,
            [
                ColumnValue(f"{at}:{number}", cell, ids)
                for number, (cell, ids) in enumerate(pairs)
            ],
        )


def compute_total_and_largest(
    amounts: Iterable[Money | None],
) -> tuple[Money | None, Money | None]:
    """Compute the sum and the largest of amounts in one currency; None without
    money."""
    known = [amount for amount in amounts if amount is not None]
    if not known:
        return None, None
    currency = known[0].currency
    total = Money(sum(amount.minor for amount in known), currency)
    return total, Money(max(amount.minor for amount in known), currency)
