"""The contents of a batch's table: columns, cells, outliers and distributions.

Finds which arguments differ among similar requests and what each cell shows. A row
stands out by numbers and equality alone, never by what a text says. A numeric column
also gets its minimum, median and maximum and a small bar chart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from statistics import median

from policies.documents import ToolDefinition
from policies.money import Money, format_money
from reviews.presenters import addressed, current, inert
from reviews.presenters.arguments import Leaf, humanise_name
from reviews.presenters.common import Subject
from reviews.presenters.shapes import Cell, Tag

FAR_FROM_MEDIAN = Decimal(2)  # times the median; from there on a number stands out
USUAL_SHARE = Decimal("0.75")  # share of rows that makes a value the usual one
MIN_ROWS_FOR_USUAL = 4  # with fewer rows no value counts as usual
DOMAIN_PATTERN = re.compile(r"(?:@|://)([\w.-]+)\s*$|://([\w.-]+)")


@dataclass(frozen=True)
class BatchLine:
    """One member as input to the table: its arguments, amount and tags."""

    id: str
    subject: Subject
    amount: Money | None
    tags: Sequence[Tag] = ()

    @cached_property
    def leaves(self) -> Mapping[str, Leaf]:
        return {leaf.path: leaf for leaf in self.subject.leaves}

    def cell(self, path: str) -> Cell | None:
        """The value at a path; None when the member has none."""
        leaf = self.leaves.get(path)
        return self.subject.cell(leaf) if leaf else None


@dataclass(frozen=True, slots=True)
class DistributionBar:
    """One bin of a distribution. A hot bin contains a row that stands out."""

    x: int
    y: int
    height: int
    hot: bool


@dataclass(frozen=True, slots=True)
class ColumnDistribution:
    label: str
    unit: str
    smallest: str
    middle: str
    largest: str
    bars: Sequence[DistributionBar]


@dataclass(frozen=True, slots=True)
class ColumnValue:
    place: str  # column number and value number, as `2:0`
    cell: Cell
    ids: Sequence[str]


@dataclass(frozen=True)
class ColumnTexts:
    """The values of a text column by row, and how common each of them is."""

    by_row: Mapping[str, str]

    @cached_property
    def domains(self) -> ColumnTexts:
        """The domains of the addresses in the values; empty where there is none."""
        return ColumnTexts(
            {row: _parse_domain(text) for row, text in self.by_row.items()}
        )

    def is_rare(self, row: str) -> bool:
        """Whether nearly all others have one usual value, and this row has another."""
        usual, count = self._counts.most_common(1)[0]
        return self.by_row[row] != usual and self._is_most_rows(count)

    def is_duplicate(self, row: str) -> bool:
        """Whether another row has the same value, while nearly all values differ."""
        counts = self._counts
        return counts[self.by_row[row]] > 1 and self._is_most_rows(len(counts))

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(self.by_row.values())

    def _is_most_rows(self, count: int) -> bool:
        rows = len(self.by_row)
        return rows >= MIN_ROWS_FOR_USUAL and count >= USUAL_SHARE * rows


NO_TEXTS = ColumnTexts({})


@dataclass(frozen=True, slots=True)
class BatchColumn:
    """One column of the table: an argument, or a fact from the reader."""

    path: str
    label: str  # may come from the reader, so it is printed as untrusted text
    plain: str  # from the policy, for our own sentences
    narrow: str  # the label beside each cell on a narrow page
    unit: str = ""
    numbers: Mapping[str, Decimal] = field(default_factory=dict)
    texts: ColumnTexts = NO_TEXTS  # of an argument that is not numeric
    fact: str = ""  # the name of a fact from the reader; empty for an argument

    @property
    def numeric(self) -> bool:
        return bool(self.numbers)


@dataclass(frozen=True, slots=True)
class BatchTableEntry:
    """One row: a cell for each column, and the reasons why it stands out."""

    id: str
    cells: Sequence[Cell]
    reasons: Sequence[str]

    @property
    def first(self) -> Cell | None:
        """The cell that tells the row from the others."""
        return self.cells[0] if self.cells else None


@dataclass(frozen=True, slots=True)
class BatchTable:
    columns: Sequence[BatchColumn]
    # What has the same value in every member, by label.
    constants: Sequence[tuple[str, Cell]]
    entries: Sequence[BatchTableEntry]  # outliers first
    spreads: Sequence[ColumnDistribution]
    splits: Sequence[tuple[BatchColumn, Sequence[ColumnValue]]]
    tags: Sequence[Tag]  # tags that the views of all members share

    @property
    def outliers(self) -> list[str]:
        return [entry.id for entry in self.entries if entry.reasons]

    @property
    def span(self) -> int:
        """The cells of a row: the checkbox, the columns, the reasons, Open."""
        return max(len(self.columns), 1) + 3

    def with_value(self, place: str) -> Sequence[str]:
        """The ids of the rows with one value; empty for an unknown place."""
        values = [value for _, column_values in self.splits for value in column_values]
        return next((value.ids for value in values if value.place == place), ())


NOT_GIVEN = Cell("not given", "nothing")
MAX_NARROW_LABEL = 40  # characters of a label


def list_differing_paths(
    lines: Sequence[BatchLine], varying: Sequence[str]
) -> list[str]:
    """List the paths within the varying arguments whose values are not all equal."""
    paths = dict.fromkeys(path for line in lines for path in line.leaves)
    return [
        path
        for path in paths
        if _find_argument_name(path, lines) in varying
        # With the type, because values of two types can print alike.
        and len(
            {cell.typed_text if (cell := line.cell(path)) else "" for line in lines}
        )
        > 1
    ]


def _find_argument_name(path: str, lines: Sequence[BatchLine]) -> str:
    """The argument that contains a path, by the first member that has it."""
    names = (line.leaves[path].name for line in lines if path in line.leaves)
    return next(names, "")


def build_column(path: str, lines: Sequence[BatchLine]) -> BatchColumn:
    """Build a column. It is numeric only when every member has a number there."""
    numbers = {line.id: _find_number(line, path) for line in lines}
    known = {
        line_id: number for line_id, number in numbers.items() if number is not None
    }
    numeric = len(known) == len(lines)
    amount = _find_amount(lines[0], path) if numeric else None
    cells = {line.id: line.cell(path) for line in lines}
    texts = ColumnTexts({pk: cell.text if cell else "" for pk, cell in cells.items()})
    label = lines[0].subject.label(path)
    plain = format_policy_label(
        lines[0].subject.definition, _find_argument_name(path, lines)
    )
    return BatchColumn(
        path,
        label,
        plain,
        _choose_narrow_label(label, plain),
        amount.currency if amount else "",
        known if numeric else {},
        NO_TEXTS if numeric else texts,
    )


def _find_amount(line: BatchLine, path: str) -> Money | None:
    """The member's amount, if this path is the amount argument or holds one in minor
    units. Another argument of the same member has no amount."""
    leaf = line.leaves.get(path)
    if leaf is not None and path in line.subject.minor_currencies:
        return line.subject.minor_money(leaf)
    first = line.subject.definition.money[:1]
    named = path in line.leaves and any(path == part.amount for part in first)
    return line.subject.amount() if named else None


def _find_number(line: BatchLine, path: str) -> Decimal | None:
    leaf = line.leaves.get(path)
    if leaf is None or line.subject.cell(leaf).kind == "sensitive":
        return None
    amount = _find_amount(line, path)
    if amount is not None:
        return Decimal(amount.minor)
    value = leaf.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Decimal(str(value))


def build_cell(line: BatchLine, column: BatchColumn) -> Cell:
    if column.fact:
        return build_fact_cell(line.subject, column.fact)
    amount = _find_amount(line, column.path) if column.unit else None
    if amount is not None:
        return Cell(format_money(amount).rpartition(" ")[0], "number").settled
    return line.cell(column.path) or NOT_GIVEN


def build_fact_columns(
    lines: Sequence[BatchLine],
) -> tuple[list[BatchColumn], list[tuple[str, Cell]]]:
    """Build the columns of the reader's facts that the policy lists.

    A fact that differs becomes a column, a fact that is equal in all members a
    constant. A fact that the reader gave for no member becomes neither.
    """
    subject, columns, same = (
        lines[0].subject,
        list[BatchColumn](),
        list[tuple[str, Cell]](),
    )
    for name in subject.definition.review.columns:
        cells = [build_fact_cell(line.subject, name) for line in lines]
        if all(cell == NOT_GIVEN for cell in cells):
            continue
        label, plain = (
            subject.label(name),
            format_policy_label(subject.definition, name),
        )
        if len(set(cells)) > 1:
            narrow = _choose_narrow_label(label, plain)
            columns.append(
                BatchColumn(f"before.{name}", label, plain, narrow, fact=name)
            )
        else:
            same.append((label, cells[0]))
    return columns, same


def build_fact_cell(subject: Subject, name: str) -> Cell:
    text = current.format_fact(subject, name)
    return Cell(text) if text else NOT_GIVEN


def list_constants(
    lines: Sequence[BatchLine], columns: Sequence[BatchColumn]
) -> list[tuple[str, Cell]]:
    first, differs = lines[0], {column.path for column in columns}
    return [
        (first.subject.label(path), first.subject.cell(leaf))
        for path, leaf in first.leaves.items()
        if path not in differs
    ]


def format_policy_label(definition: ToolDefinition, name: str) -> str:
    """Format an argument's label from the policy alone. Our own sentences never contain
    text of the agent or the reader."""
    return definition.labels.get(name) or humanise_name(name or "value")


def _choose_narrow_label(label: str, plain: str) -> str:
    """Choose the label that a narrow page prints beside each cell.

    There it is an HTML attribute, so the column's own label is used only when it is
    short and contains nothing that must be marked.
    """
    short = len(label) <= MAX_NARROW_LABEL and not addressed.find_addressed_lines(
        [label]
    )
    marked = any(token.kind != "plain" for token in inert.build_line_segments(label))
    return label if short and not marked else plain


def list_outlier_reasons(
    line: BatchLine, columns: Sequence[BatchColumn], shared: Sequence[Tag]
) -> Iterator[str]:
    """List why a row stands out. Tags that all members share are not a reason."""
    for column in columns:
        if column.numeric:
            yield from _list_numeric_reasons(line, column)
        else:
            yield from _list_text_reasons(line, column)
    for tag in line.tags:
        if tag.loud and tag not in shared:
            yield tag.text


def _list_numeric_reasons(line: BatchLine, column: BatchColumn) -> Iterator[str]:
    middle = median(column.numbers.values())
    times = column.numbers[line.id] / middle if middle > 0 else Decimal(0)
    if times >= FAR_FROM_MEDIAN:
        yield f"{times:.1f} times the median"


def _list_text_reasons(line: BatchLine, column: BatchColumn) -> Iterator[str]:
    """The reasons of a text column: a value unlike the usual one, a value that occurs
    twice where the others all differ, or an address in another domain."""
    if column.texts.is_rare(line.id):
        yield f"{column.plain} differs from the usual value"
    elif column.texts.is_duplicate(line.id):
        yield f"{column.plain} appears more than once"
    elif column.texts.domains.is_rare(line.id):
        yield f"{column.plain} has a different domain"


def _parse_domain(text: str) -> str:
    match = DOMAIN_PATTERN.search(text)
    return (match[1] or match[2] or "").lower() if match else ""
