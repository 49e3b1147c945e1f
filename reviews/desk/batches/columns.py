"""What a batch's table is made of: rows as they come in, columns, and what is said of
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from policies.money import Money
from reviews.presenters.arguments import Leaf
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Cell, Tag


@dataclass(frozen=True, slots=True)
class Constant:
    label: str
    cell: Cell


@dataclass(frozen=True)
class Line:
    """One member as it comes in: what it would do, and what its own view calls out."""

    id: str
    subject: Subject
    amount: Money | None
    tags: Sequence[Tag] = ()
    counts: Sequence[Constant] = ()  # what each call moves by a number

    @cached_property
    def leaves(self) -> Mapping[str, Leaf]:
        return {leaf.path: leaf for leaf in self.subject.leaves}


@dataclass(frozen=True, slots=True)
class Bar:
    """One bin of a distribution; a hot one holds a row that stands out."""

    x: int
    y: int
    height: int
    hot: bool


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution line of a numeric column."""

    label: str
    unit: str
    smallest: str
    middle: str
    largest: str
    bars: Sequence[Bar]


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a column, and how many rows have it."""

    place: str  # column and value by number
    cell: Cell
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Column:
    path: str
    label: str  # may be the reader's, so it is printed as such
    plain: str  # the policy's, for our own sentences
    narrow: str  # what a cell says of itself where there are no columns
    unit: str = ""
    numbers: Mapping[str, Decimal] = field(default_factory=dict)
    fact: str = ""  # of the reader, where it is no argument

    @property
    def numeric(self) -> bool:
        return bool(self.numbers)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: a cell for each column, and why it stands out."""

    id: str
    cells: Sequence[Cell]
    reasons: Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    columns: Sequence[Column]
    constants: Sequence[Constant]
    entries: Sequence[Entry]  # those that stand out first
    spreads: Sequence[Spread]
    splits: Sequence[tuple[Column, Sequence[Value]]]
    tags: Sequence[Tag]  # what every member's own view calls out

    @property
    def outliers(self) -> list[str]:
        return [entry.id for entry in self.entries if entry.reasons]

    def with_value(self, place: str) -> Sequence[str]:
        """The rows that have one value of one column; none for no such place."""
        values = [value for _, found in self.splits for value in found]
        return next((value.ids for value in values if value.place == place), ())
