"""What can be asked of the fields and arguments of any effect. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from policies.schemas import Schema
from reviews.micro_checks.likeness import counts
from reviews.presenters.declared import declared
from reviews.presenters.shapes import Presentation

from .distractors import (
    CHANGES,
    IF_WRONG,
    LONGEST,
    Draft,
    Wordings,
    about,
    can_be_asked,
    choices,
    field_of,
    name_of,
    of_rows,
    others,
    ours,
    texts_under,
    without,
)

_RECIPIENTS = re.compile(r"(to|cc|bcc)(\[\d+\])?")
_ADDRESS = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+")
_OUTSIDE = re.compile(r"(\d+) recipients? outside the company")
_WORDS = (
    "Reversible",
    "Partly reversible",
    "Irreversible",
    "Unknown: treat as irreversible",
)
_UNCLEAR = {"Irreversible", "Unknown: treat as irreversible"}
_TO_WHOM = f"{CHANGES}, the recipients"


def drafts(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    """Everything that could be asked, the rarest kinds first."""
    yield from _changed(shown, schema)
    yield from of_rows(
        shown.beside,
        "given",
        lambda row: f"{CHANGES}, the arguments, row {row}",
        schema,
        shown,
    )
    on_top = f"{CHANGES}, the arguments stated on top"
    yield from of_rows(shown.stated, "stated", lambda _: on_top, schema, shown)
    yield from _recipients(shown)
    yield from _outside(shown)
    yield from _which_changes(shown, schema)
    yield from _undone(shown)


def _changed(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    for row, change in enumerate(shown.changes, 1):
        after = change.after
        if after is None or not can_be_asked(after):
            continue
        name = name_of(change)
        true = texts_under(name, shown)
        known = [
            cell
            for other in shown.changes
            for cell in (other.before if other is change else None, other.after)
            if can_be_asked(cell)
        ]
        could_be = choices(schema, change.path)
        wrong = others(after.text, known, could_be, true)
        single = len(true) == 1
        wordings = _afterwards(name) if single else _among(name)
        yield Draft(f"after:{row}", wordings, after.text, wrong, _place(row), single)


def _afterwards(name: str) -> Wordings:
    return (
        about("After this runs, what is the value of ", name, "?"),
        about("Which value does ", name, " have after this runs?"),
    )


def _among(name: str) -> Wordings:
    return (
        about("After this runs, which of these is a value of ", name, "?"),
        about("Which of these stands under ", name, " after this runs?"),
    )


def _recipients(shown: Presentation) -> Iterator[Draft]:
    """How many addresses, where each row is one plain address and none comes twice."""
    rows = [row for row in shown.other if _RECIPIENTS.fullmatch(row.path)]
    found = [row.cell.text.casefold() for row in rows if row.cell.kind == "text"]
    plain = all(_ADDRESS.fullmatch(text) for text in found)
    elsewhere = [row.path for row in shown.unchanged]
    elsewhere += [change.path for change in shown.changes]
    if any(_RECIPIENTS.fullmatch(path) for path in elsewhere):
        return
    if not found or not plain or len(set(found)) < len(found):
        return
    wordings = ours(
        "How many addresses will get this, copies included?",
        "To how many addresses does this go in all?",
    )
    count = len(found)
    yield Draft("recipients", wordings, str(count), counts(count), _TO_WHOM, True)


def _outside(shown: Presentation) -> Iterator[Draft]:
    """From the fact above the page: it is ours, and so are its words."""
    for tag in shown.tags:
        found = _OUTSIDE.fullmatch(tag.text)
        if found is None:
            continue
        wordings = ours(
            "How many recipients outside the company will get this?",
            "How many of its recipients are outside the company?",
        )
        wrong = counts(int(found[1]))
        yield Draft("outside", wordings, found[1], wrong, _TO_WHOM, True)


def _which_changes(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    """Not asked of what removes a record, where more may go than the page can list."""
    if all(change.after is None for change in shown.changes):
        return
    wrong = _stays(shown, schema)
    wordings = ours("Which of these does it change?", "Which of these will change?")
    for row, change in enumerate(shown.changes, 1):
        if len(change.label) <= LONGEST:
            yield Draft(f"changes:{row}", wordings, change.label, wrong, _place(row))


def _stays(shown: Presentation, schema: Schema) -> tuple[str, ...]:
    """Fields known to stay: the reader gave their value, the tool's schema declares
    them, and the argument is that same value. What no argument names may change
    unseen, and so may a list of which another entry changes."""
    moves = [field_of(change.path) for change in shown.changes]
    labels = [name_of(change) for change in shown.changes]
    labels += [name_of(row) for row in (*shown.now, *shown.other)]
    stays = [
        name_of(row)
        for row in shown.unchanged
        if declared(schema, row.path) and field_of(row.path) not in moves
    ]
    return without(stays, labels)


def _undone(shown: Presentation) -> Iterator[Draft]:
    word = shown.reversal.word
    wordings = ours(
        "What does the tool declare: can this be undone?",
        "According to its tool, can this be undone?",
    )
    unclear = _UNCLEAR if word in _UNCLEAR else {word}
    wrong = tuple(other for other in _WORDS if other not in unclear)
    yield Draft("reversal", wordings, word, wrong, IF_WRONG)


def _place(row: int) -> str:
    return f"{CHANGES}, row {row}"
