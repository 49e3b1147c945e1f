"""A batch as one table: what all have in common once, what differs in columns, the rows
that stand out first, and how each number is spread (ux.md 4.3). Reads no row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from statistics import median

from policies.money import Money
from reviews.presenters.common import Subject, figure
from reviews.presenters.leaves import Leaf, humanise
from reviews.presenters.shapes import Cell, Tag

FAR = Decimal(2)  # times the median: a number that stands out
USUAL = Decimal("0.75")  # of the rows have it: what differs from that stands out
FEW = 4  # rows in which nothing can be usual
MOST_VALUES = 8  # of a column by which a batch can be split
BINS = 42
WIDE, HIGH = 10, 32  # of a bar's place and of the highest bar
DOMAIN = re.compile(r"(?:@|://)([\w.-]+)\s*$|://([\w.-]+)")
NONE = Cell("not given", "nothing")


@dataclass(frozen=True)
class Line:
    """One member as it comes in: what it would do, and what its own view calls out."""

    id: str
    subject: Subject
    amount: Money | None
    tags: Sequence[Tag] = ()

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
    unit: str = ""
    numbers: Mapping[str, Decimal] = field(default_factory=dict)

    @property
    def numeric(self) -> bool:
        return bool(self.numbers)


@dataclass(frozen=True, slots=True)
class Constant:
    label: str
    cell: Cell


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


def build(lines: Sequence[Line], varying: Sequence[str]) -> Table:
    """The table of alike members, which all have the same tool."""
    columns = [_column(path, lines) for path in _differing(lines, varying)]
    shared = _shared_tags(lines)
    entries = [
        Entry(
            line.id,
            [_cell(line, column) for column in columns],
            list(_reasons(line, columns, lines, shared)),
        )
        for line in lines
    ]
    return Table(
        columns=columns,
        constants=_constants(lines, columns),
        entries=sorted(entries, key=lambda entry: -len(entry.reasons)),
        spreads=[_spread(column) for column in columns if column.numeric],
        splits=list(_splits(columns, entries)),
        tags=shared,
    )


def _differing(lines: Sequence[Line], varying: Sequence[str]) -> list[str]:
    """Paths inside the varying arguments whose values are not all the same."""
    paths = dict.fromkeys(path for line in lines for path in line.leaves)
    return [
        path
        for path in paths
        if _name_of(path, lines) in varying
        and len({_text(line, path) for line in lines}) > 1
    ]


def _name_of(path: str, lines: Sequence[Line]) -> str:
    """The argument that a path is in, by whoever has it."""
    found = (line.leaves[path].name for line in lines if path in line.leaves)
    return next(found, "")


def _text(line: Line, path: str) -> str:
    leaf = line.leaves.get(path)
    return line.subject.cell(leaf).text if leaf else ""


def _column(path: str, lines: Sequence[Line]) -> Column:
    numbers = {line.id: _number(line, path) for line in lines}
    known = {one: number for one, number in numbers.items() if number is not None}
    numeric = len(known) == len(lines)
    unit = lines[0].amount.currency if numeric and _is_amount(lines[0], path) else ""  # type: ignore[union-attr]
    return Column(
        path,
        lines[0].subject.label(path),
        _plain_label(lines[0].subject, _name_of(path, lines)),
        unit,
        known if numeric else {},
    )


def _is_amount(line: Line, path: str) -> bool:
    first = line.subject.definition.money[:1]
    return line.amount is not None and any(path == part.amount for part in first)


def _number(line: Line, path: str) -> Decimal | None:
    leaf = line.leaves.get(path)
    if leaf is None or line.subject.cell(leaf).kind == "sensitive":
        return None
    if line.amount is not None and _is_amount(line, path):
        return Decimal(line.amount.minor)
    value = leaf.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(str(value))


def _cell(line: Line, column: Column) -> Cell:
    leaf = line.leaves.get(column.path)
    if leaf is None:
        return NONE
    if line.amount is not None and column.unit:
        return Cell(figure(line.amount).rpartition(" ")[0], "number")
    return line.subject.cell(leaf)


def _constants(lines: Sequence[Line], columns: Sequence[Column]) -> list[Constant]:
    first, differs = lines[0], {column.path for column in columns}
    return [
        Constant(first.subject.label(path), first.subject.cell(leaf))
        for path, leaf in first.leaves.items()
        if path not in differs
    ]


def _shared_tags(lines: Sequence[Line]) -> list[Tag]:
    """What the views of all members say; a reviewer reads it once."""
    common = set(lines[0].tags).intersection(*(set(line.tags) for line in lines))
    return [tag for tag in lines[0].tags if tag in common]


# Why a row stands out.
def _reasons(
    line: Line, columns: Sequence[Column], lines: Sequence[Line], shared: Sequence[Tag]
) -> Iterator[str]:
    for column in columns:
        if column.numeric:
            yield from _far_off(line, column)
        else:
            yield from _odd(line, column, lines)
    for tag in line.tags:
        if tag.loud and tag not in shared:
            yield tag.text


def _far_off(line: Line, column: Column) -> Iterator[str]:
    middle = median(column.numbers.values())
    times = column.numbers[line.id] / middle if middle > 0 else Decimal(0)
    if times >= FAR:
        yield f"{times:.1f} times the median"


def _odd(line: Line, column: Column, lines: Sequence[Line]) -> Iterator[str]:
    """A value unlike the usual one, a value twice where all others are different, and
    an address in another domain."""
    texts = [_text(one, column.path) for one in lines]
    mine, label = _text(line, column.path), column.plain
    if _is_rare(mine, texts):
        yield f"{label} is not the usual one"
    elif _is_double(mine, texts):
        yield f"{label} stands here twice"
    elif _is_rare(_domain(mine), [_domain(text) for text in texts]):
        yield f"{label} has another domain"


def _is_rare(mine: str, all_: Sequence[str]) -> bool:
    usual, count = Counter(all_).most_common(1)[0]
    return len(all_) >= FEW and mine != usual and count >= USUAL * len(all_)


def _is_double(mine: str, all_: Sequence[str]) -> bool:
    different = len(set(all_))
    return len(all_) >= FEW and all_.count(mine) > 1 and different >= USUAL * len(all_)


def _domain(text: str) -> str:
    found = DOMAIN.search(text)
    return (found[1] or found[2] or "").lower() if found else ""


def _plain_label(subject: Subject, name: str) -> str:
    """By the policy alone: what stands in one of our own sentences is never the
    agent's or the reader's."""
    return subject.definition.labels.get(name) or humanise(name or "value")


# How numbers are spread.
def _spread(column: Column) -> Spread:
    numbers = sorted(column.numbers.values())
    middle = Decimal(median(numbers))
    said = _said(column)
    return Spread(
        label=column.label,
        unit=column.unit,
        smallest=said(numbers[0]),
        middle=said(middle),
        largest=said(numbers[-1]),
        bars=list(_bars(numbers, middle)),
    )


def _said(column: Column) -> Callable[[Decimal], str]:
    if not column.unit:
        return lambda number: f"{number.normalize():f}"
    return lambda number: figure(Money(round(number), column.unit)).rpartition(" ")[0]


def _bars(numbers: Sequence[Decimal], middle: Decimal) -> Iterator[Bar]:
    low, width = numbers[0], (numbers[-1] - numbers[0]) or Decimal(1)
    counts: Counter[int] = Counter()
    hot: set[int] = set()
    for number in numbers:
        place = min(int((number - low) / width * BINS), BINS - 1)
        counts[place] += 1
        if middle > 0 and number / middle >= FAR:
            hot.add(place)
    most = max(counts.values())
    for place, count in sorted(counts.items()):
        height = max(round(HIGH * count / most), 3)
        yield Bar(place * WIDE, HIGH - height, height, place in hot)


def _splits(
    columns: Sequence[Column], entries: Sequence[Entry]
) -> Iterator[tuple[Column, Sequence[Value]]]:
    """The columns with a few values, by which a batch can be taken apart."""
    for at, column in enumerate(columns):
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
