"""Questions before chance: ways to ask, the answer, and wrong ones. Pure.

A draft's id is kind and row, and its place how the page names it: neither holds a word
of anybody's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from policies.schemas import Schema
from reviews.micro_checks.likeness import is_same, near_misses
from reviews.presenters.declared import listed, worded
from reviews.presenters.shapes import Cell, Change, Part, Presentation, Row, Text, Value
from reviews.presenters.views import Group

CHANGES, IF_WRONG = "What changes", "If it goes wrong"
LONGEST = 60
_ASKED_KINDS = {"text", "number", "yes or no"}
_STEP = re.compile(r"\[(\d+)\]")

Wordings = tuple[tuple[Part, ...], ...]
Named = Row | Change


@dataclass(frozen=True, slots=True)
class Draft:
    """What could be asked of one fact of the page.

    `may_be_absent` says that the question stays a fair one when the right answer is not
    offered: "which of these" is not, since it says that one of them is right.
    """

    id: str
    wordings: Wordings
    right: str
    wrong: tuple[str, ...]
    look: str
    may_be_absent: bool = False


def of_rows(
    rows: Sequence[Row],
    kind: str,
    place: Callable[[int], str],
    schema: Schema,
    page: Presentation,
) -> Iterator[Draft]:
    """What the values in some rows are. Which of several in a list is the first of
    them is not asked: nobody reads for that."""
    for number, row in enumerate(rows, 1):
        if not can_be_asked(row.cell):
            continue
        name = name_of(row)
        beside = [
            other.cell
            for other in rows
            if name_of(other) != name and other.cell.kind == row.cell.kind
        ]
        known = [one for one in beside if can_be_asked(one)]
        true = texts_under(name, page)
        wrong = others(row.cell.text, known, choices(schema, row.path), true)
        single = len(true) == 1
        wordings = _of_value(name) if single else _of_list(name)
        yield Draft(
            f"{kind}:{number}", wordings, row.cell.text, wrong, place(number), single
        )


def choices(schema: Schema, path: str) -> list[str]:
    """What the schema lists for a value, as the page says it."""
    said = worded(schema, path)
    return [said.get(one, one) for one in listed(schema, path)]


def name_of(row: Named) -> str:
    """Its label, without its place in a list."""
    places = " ".join(str(int(n) + 1) for n in _STEP.findall(row.path))
    return row.label.removesuffix(f" {places}") if places else row.label


def field_of(path: str) -> str:
    """The field that a path is part of: of an entry its list, else itself."""
    return path.partition("[")[0]


def texts_under(name: str, page: Presentation) -> list[str]:
    """Every value that the page gives under a name, wherever on the page: each of them
    could be called right. A change counts with what stands afterwards."""
    groups = [view.rows for view in page.views if isinstance(view, Group)]
    rows = [*page.other, *page.unchanged, *page.now, *chain.from_iterable(groups)]
    found: list[tuple[Named, Cell | None]] = [(row, row.cell) for row in rows]
    found += [(change, change.after) for change in page.changes]
    return [
        cell.text
        for row, cell in found
        if cell is not None and is_same(name_of(row), name)
    ]


def _of_value(name: str) -> Wordings:
    return (
        about("In this request, what is the value of ", name, "?"),
        about("Which value does this request give for ", name, "?"),
    )


def _of_list(name: str) -> Wordings:
    return (
        about("Which of these does this request give under ", name, "?"),
        about("Under ", name, ", which of these does this request list?"),
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
    right: str,
    known: Sequence[Cell | None],
    could_be: Sequence[str] = (),
    true: Sequence[str] = (),
) -> tuple[str, ...]:
    """Wrong answers that look alike: what the schema lists beside it, or else values
    from beside it, and near misses. None says the same as the right answer or as
    another one that is `true` as well."""
    if right in {"yes", "no"}:
        return ()  # two answers are no question
    rivals = without(could_be, [right, *true])
    if len(rivals) > 1:
        return rivals
    found = [cell.text for cell in known if cell is not None]
    return without([*found, *near_misses(right)], [right, *true])


def without(candidates: Iterable[str], true: Sequence[str]) -> tuple[str, ...]:
    """Those short enough to offer that say nothing `true`, each once."""
    kept: list[str] = []
    for text in candidates:
        known = [*true, *kept]
        if len(text) <= LONGEST and not any(is_same(text, one) for one in known):
            kept.append(text)
    return tuple(kept)
