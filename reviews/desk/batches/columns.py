"""What a batch's table is made of: rows as they come in, columns, and what is said of
them.

Which arguments differ among alike requests, and what stands in each cell.

Why a row stands out among those like it: by numbers and equality alone, never by
what a text says.

How the numbers of a column are spread: three figures and a line of bars.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from statistics import median

from policies.documents import ToolDefinition
from policies.money import Money
from reviews.presenters import addressed, current, inert
from reviews.presenters.arguments import Leaf, humanise
from reviews.presenters.common import Subject
from reviews.presenters.current import figure
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


NONE = Cell("not given", "nothing")
MOST_NARROW = 40  # letters of a label


def differing(lines: Sequence[Line], varying: Sequence[str]) -> list[str]:
    """Paths inside the varying arguments whose values are not all the same."""
    paths = dict.fromkeys(path for line in lines for path in line.leaves)
    return [
        path
        for path in paths
        if _name_of(path, lines) in varying
        and len({_said(line, path) for line in lines}) > 1
    ]


def _name_of(path: str, lines: Sequence[Line]) -> str:
    """The argument that a path is in, by whoever has it."""
    found = (line.leaves[path].name for line in lines if path in line.leaves)
    return next(found, "")


def _said(line: Line, path: str) -> str:
    """The same with its type, where two values may read alike."""
    leaf = line.leaves.get(path)
    return line.subject.cell(leaf).said if leaf else ""


def text_of(line: Line, path: str) -> str:
    leaf = line.leaves.get(path)
    return line.subject.cell(leaf).text if leaf else ""


def column(path: str, lines: Sequence[Line]) -> Column:
    numbers = {line.id: _number(line, path) for line in lines}
    known = {one: number for one, number in numbers.items() if number is not None}
    numeric = len(known) == len(lines)
    amount = _amount(lines[0], path) if numeric else None
    label = lines[0].subject.label(path)
    plain = plain_label(lines[0].subject.definition, _name_of(path, lines))
    return Column(
        path,
        label,
        plain,
        _narrow(label, plain),
        amount.currency if amount else "",
        known if numeric else {},
    )


def _amount(line: Line, path: str) -> Money | None:
    """The amount that this argument is, not all that the member moves."""
    first = line.subject.definition.money[:1]
    named = path in line.leaves and any(path == part.amount for part in first)
    return line.subject.amount() if named else None


def _number(line: Line, path: str) -> Decimal | None:
    leaf = line.leaves.get(path)
    if leaf is None or line.subject.cell(leaf).kind == "sensitive":
        return None
    amount = _amount(line, path)
    if amount is not None:
        return Decimal(amount.minor)
    value = leaf.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(str(value))


def cell(line: Line, column: Column) -> Cell:
    if column.fact:
        return fact(line.subject, column.fact)
    leaf = line.leaves.get(column.path)
    if leaf is None:
        return NONE
    amount = _amount(line, column.path) if column.unit else None
    if amount is not None:
        return Cell(figure(amount).rpartition(" ")[0], "number").settled
    return line.subject.cell(leaf)


def of_facts(lines: Sequence[Line]) -> tuple[list[Column], list[Constant]]:
    """The reader's facts that the policy names: those that differ as columns, the
    others once for all. What the reader said of no member has neither."""
    subject, found, same = lines[0].subject, list[Column](), list[Constant]()
    for name in subject.definition.review.columns:
        cells = [fact(line.subject, name) for line in lines]
        if all(one == NONE for one in cells):
            continue
        label, plain = subject.label(name), plain_label(subject.definition, name)
        if len(set(cells)) > 1:
            narrow = _narrow(label, plain)
            found.append(Column(f"before.{name}", label, plain, narrow, fact=name))
        else:
            same.append(Constant(label, cells[0]))
    return found, same


def fact(subject: Subject, name: str) -> Cell:
    """One fact of the reader, in one line."""
    text = current.text(subject, name)
    return Cell(text) if text else NONE


def constants(lines: Sequence[Line], columns: Sequence[Column]) -> list[Constant]:
    first, differs = lines[0], {column.path for column in columns}
    return [
        Constant(first.subject.label(path), first.subject.cell(leaf))
        for path, leaf in first.leaves.items()
        if path not in differs
    ]


def plain_label(definition: ToolDefinition, name: str) -> str:
    """By the policy alone: what stands in one of our own sentences is never the
    agent's or the reader's."""
    return definition.labels.get(name) or humanise(name or "value")


def _narrow(label: str, plain: str) -> str:
    """Beside each cell of a narrow page it stands as an attribute: the label of the
    wide page where nothing in it has to be marked."""
    short = len(label) <= MOST_NARROW and not addressed.speaking([label])
    marked = any(token.kind != "plain" for token in inert.tokens(label))
    return label if short and not marked else plain


FAR = Decimal(2)  # times the median: a number that stands out
USUAL = Decimal("0.75")  # of the rows have it: what differs from that stands out
FEW = 4  # rows in which nothing can be usual
DOMAIN = re.compile(r"(?:@|://)([\w.-]+)\s*$|://([\w.-]+)")


def reasons(
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
    texts = [text_of(one, column.path) for one in lines]
    mine, label = text_of(line, column.path), column.plain
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


BINS = 42
WIDE, HIGH = 10, 32  # of a bar's place and of the highest bar


def spread(column: Column) -> Spread:
    numbers = sorted(column.numbers.values())
    middle = Decimal(median(numbers))
    said = _spread_said(column)
    return Spread(
        label=column.label,
        unit=column.unit,
        smallest=said(numbers[0]),
        middle=said(middle),
        largest=said(numbers[-1]),
        bars=list(_bars(numbers, middle)),
    )


def _spread_said(column: Column) -> Callable[[Decimal], str]:
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
