"""The table of a batch: equal values once, differing ones in columns, outliers
first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from statistics import median
from typing import Any

from policies.documents import ToolDefinition
from policies.money import Money, format_money
from reviews.batches.membership import BatchMember
from reviews.effects import describe
from reviews.models import Revision
from reviews.presenters.amounts import build_count_changes
from reviews.presenters.arguments import sort_by_schema
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Cell, Tag

from . import columns
from .columns import (
    FAR_FROM_MEDIAN,
    BatchColumn,
    BatchLine,
    BatchTable,
    BatchTableEntry,
    ColumnDistribution,
    ColumnValue,
    DistributionBar,
)


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


def find_reading(member: BatchMember) -> Mapping[str, Any] | None:
    return member.reading.reading if member.reading else None


def find_amount(member: BatchMember) -> Money | None:
    """Find the amount that a member moves; None without money."""
    revision = member.version.revision
    minor = revision.amount_minor
    return None if minor is None else Money(minor, revision.currency)


MAX_SPLIT_VALUES = 8  # of a column by which a batch can be split


def build_table(lines: Sequence[BatchLine], varying: Sequence[str]) -> BatchTable:
    """Build the table of similar members of one tool. Runs no query."""
    if not lines:  # of a batch that was dissolved
        return BatchTable((), (), (), (), (), ())
    arguments = [
        columns.build_column(path, lines)
        for path in columns.list_differing_paths(lines, varying)
    ]
    facts, same = columns.build_fact_columns(lines)
    shown = [*arguments, *facts]
    shared = _list_shared_tags(lines)
    entries = [
        BatchTableEntry(
            line.id,
            [columns.build_cell(line, column) for column in shown],
            list(columns.list_outlier_reasons(line, arguments, shared)),
        )
        for line in lines
    ]
    return BatchTable(
        columns=shown,
        constants=[
            *columns.list_constants(lines, arguments),
            *same,
            *_list_shared_counts(lines),
        ],
        entries=sorted(entries, key=lambda entry: -len(entry.reasons)),
        spreads=[_build_distribution(column) for column in arguments if column.numeric],
        splits=list(_build_splits(shown, entries)),
        tags=shared,
    )


def _list_shared_tags(lines: Sequence[BatchLine]) -> list[Tag]:
    """The tags that all members' views have; the page prints them once."""
    common = set(lines[0].tags).intersection(*(set(line.tags) for line in lines))
    return [tag for tag in lines[0].tags if tag in common]


def _list_shared_counts(lines: Sequence[BatchLine]) -> list[tuple[str, Cell]]:
    """The numeric changes that are equal in all members: `0 → 1`."""
    moves = [list(build_count_changes(line.subject)) for line in lines]
    return [
        (change.label, Cell(f"{change.before.typed_text} → {change.after.typed_text}"))
        for change in moves[0]
        if change.before and change.after and all(change in others for others in moves)
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
    """The sum and the largest of amounts in one currency; None without money."""
    known = [amount for amount in amounts if amount is not None]
    if not known:
        return None, None
    currency = known[0].currency
    total = Money(sum(amount.minor for amount in known), currency)
    return total, Money(max(amount.minor for amount in known), currency)


BINS = 42
WIDE, HIGH = 10, 32  # width of a bin and height of the highest bar


def _build_distribution(column: BatchColumn) -> ColumnDistribution:
    numbers = sorted(column.numbers.values())
    middle = Decimal(median(numbers))
    format_number = _build_number_format(column)
    return ColumnDistribution(
        label=column.label,
        unit=column.unit,
        smallest=format_number(numbers[0]),
        middle=format_number(middle),
        largest=format_number(numbers[-1]),
        bars=list(_build_bars(numbers, middle)),
    )


def _build_number_format(column: BatchColumn) -> Callable[[Decimal], str]:
    if not column.unit:
        return lambda number: f"{number.normalize():f}"
    return lambda number: format_money(Money(round(number), column.unit)).rpartition(
        " "
    )[0]


def _build_bars(
    numbers: Sequence[Decimal], middle: Decimal
) -> Iterator[DistributionBar]:
    low, width = numbers[0], (numbers[-1] - numbers[0]) or Decimal(1)
    counts: Counter[int] = Counter()
    hot: set[int] = set()
    for number in numbers:
        place = min(int((number - low) / width * BINS), BINS - 1)
        counts[place] += 1
        if middle > 0 and number / middle >= FAR_FROM_MEDIAN:
            hot.add(place)
    most = max(counts.values())
    for place, count in sorted(counts.items()):
        height = max(round(HIGH * count / most), 3)
        yield DistributionBar(place * WIDE, HIGH - height, height, place in hot)
