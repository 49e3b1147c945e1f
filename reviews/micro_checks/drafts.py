"""Questions before chance: ways to ask, the answer, and wrong ones. Pure.

A draft's id is kind and row, and its place how the page names it: neither holds a word
of anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from policies.schemas import Schema
from reviews.presenters.declared import listed
from reviews.presenters.shapes import Cell, Part, Row, Text, Value

from .likeness import near_misses

CHANGES, IF_WRONG = "What changes", "If it goes wrong"
LONGEST = 60
_ASKED_KINDS = {"text", "number", "yes or no"}
_STEP = re.compile(r"\[(\d+)\]")

Wordings = tuple[tuple[Part, ...], ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """What could be asked of one fact of the page."""

    id: str
    wordings: Wordings
    right: str
    wrong: tuple[str, ...]
    look: str


def of_rows(
    rows: Sequence[Row], kind: str, place: Callable[[int], str], schema: Schema
) -> Iterator[Draft]:
    """What the values in some rows are. Which of several in a list is the first of
    them is not asked: nobody reads for that."""
    for number, row in enumerate(rows, 1):
        if not can_be_asked(row.cell):
            continue
        name = _name(row)
        together = [other.cell.text for other in rows if _name(other) == name]
        beside = [
            other.cell
            for other in rows
            if _name(other) != name and other.cell.kind == row.cell.kind
        ]
        known = [one for one in beside if can_be_asked(one)]
        wrong = others(row.cell.text, known, listed(schema, row.path))
        wrong = tuple(text for text in wrong if text not in together)
        wordings = _of_value(name) if len(together) == 1 else _of_list(name)
        yield Draft(f"{kind}:{number}", wordings, row.cell.text, wrong, place(number))


def _name(row: Row) -> str:
    """Its label, without its place in a list."""
    places = " ".join(str(int(n) + 1) for n in _STEP.findall(row.path))
    return row.label.removesuffix(f" {places}") if places else row.label


def _of_value(name: str) -> Wordings:
    return (
        about("What does this give as ", name, "?"),
        about("Which is the value of ", name, " here?"),
    )


def _of_list(name: str) -> Wordings:
    return (
        about("Which of these does it give under ", name, "?"),
        about("One of these stands under ", name, " here. Which?"),
    )


def about(before: str, label: str, after: str) -> tuple[Part, ...]:
    """One way to ask, with a label of the page in it."""
    return (Text(before), Value(label), Text(after))


def ours(*wordings: str) -> Wordings:
    """Ways to ask in our own words alone."""
    return tuple((Text(one),) for one in wordings)


def can_be_asked(cell: Cell | None) -> bool:
    """A short plain value; what is hidden or empty tells nothing."""
    if cell is None or cell.long or not cell.text.strip():
        return False
    return cell.kind in _ASKED_KINDS and len(cell.text) <= LONGEST


def others(
    right: str, known: Sequence[Cell | None], could_be: Sequence[str] = ()
) -> tuple[str, ...]:
    """Wrong answers that look alike: what the schema lists beside it, or else values
    from beside it, and near misses."""
    if right in {"yes", "no"}:
        return ()  # two answers are no question
    rivals = tuple(one for one in could_be if one != right and len(one) <= LONGEST)
    if len(rivals) > 1:
        return rivals
    found = [cell.text for cell in known if cell is not None]
    found += [text for text in near_misses(right) if len(text) <= LONGEST]
    return tuple(text for text in dict.fromkeys(found) if text != right)
