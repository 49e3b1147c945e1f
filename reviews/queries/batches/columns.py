"""Which arguments differ among alike requests, and what stands in each cell."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from policies.documents import ToolDefinition
from policies.money import Money
from reviews.desk.batches.columns import Column, Constant, Line
from reviews.presenters import addressed, current, inert
from reviews.presenters.arguments import humanise
from reviews.presenters.common import Subject
from reviews.presenters.current import figure
from reviews.presenters.shapes import Cell

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
