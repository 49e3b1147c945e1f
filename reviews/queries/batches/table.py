"""A batch as one table: what all have in common once, what differs in columns, the rows
that stand out first, and how each number is spread (ux.md 4.3). Reads no row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from policies.money import Money
from reviews.desk.batches.columns import Column, Constant, Entry, Line, Table, Value
from reviews.presenters.shapes import Cell, Tag

from . import columns, outliers
from .spreads import spread

MOST_VALUES = 8  # of a column by which a batch can be split


def build(lines: Sequence[Line], varying: Sequence[str]) -> Table:
    """The table of alike members, which all have the same tool."""
    found = [columns.column(path, lines) for path in columns.differing(lines, varying)]
    facts, same = columns.of_facts(lines)
    shown = [*found, *facts]
    shared = _shared_tags(lines)
    entries = [
        Entry(
            line.id,
            [columns.cell(line, column) for column in shown],
            list(outliers.reasons(line, found, lines, shared)),
        )
        for line in lines
    ]
    return Table(
        columns=shown,
        constants=[*columns.constants(lines, found), *same, *_same_counts(lines)],
        entries=sorted(entries, key=lambda entry: -len(entry.reasons)),
        spreads=[spread(column) for column in found if column.numeric],
        splits=list(_splits(shown, entries)),
        tags=shared,
    )


def _shared_tags(lines: Sequence[Line]) -> list[Tag]:
    """What the views of all members say; a reviewer reads it once."""
    common = set(lines[0].tags).intersection(*(set(line.tags) for line in lines))
    return [tag for tag in lines[0].tags if tag in common]


def _same_counts(lines: Sequence[Line]) -> list[Constant]:
    """What each of them moves by a number, where it is the same move for all."""
    common = set(lines[0].counts).intersection(*(set(line.counts) for line in lines))
    return [count for count in lines[0].counts if count in common]


def _splits(
    among: Sequence[Column], entries: Sequence[Entry]
) -> Iterator[tuple[Column, Sequence[Value]]]:
    """The columns with a few values, by which a batch can be taken apart."""
    for at, column in enumerate(among):
        having: dict[Cell, list[str]] = {}
        for entry in entries:
            having.setdefault(entry.cells[at], []).append(entry.id)
        if column.numeric or not 2 <= len(having) <= min(MOST_VALUES, len(entries) - 1):
            continue
        pairs = sorted(having.items(), key=lambda pair: -len(pair[1]))
        yield (
            column,
            [
                Value(f"{at}:{number}", cell, ids)
                for number, (cell, ids) in enumerate(pairs)
            ],
        )


def total_of(amounts: Iterable[Money | None]) -> tuple[Money | None, Money | None]:
    """Sum and largest of amounts in one currency; None without money."""
    known = [amount for amount in amounts if amount is not None]
    if not known:
        return None, None
    currency = known[0].currency
    total = Money(sum(amount.minor for amount in known), currency)
    return total, Money(max(amount.minor for amount in known), currency)
