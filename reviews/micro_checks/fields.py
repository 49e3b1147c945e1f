"""What can be asked of the fields and arguments of any effect. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from policies.schemas import Schema
from reviews.presenters.declared import listed
from reviews.presenters.shapes import Presentation

from .drafts import (
    CHANGES,
    IF_WRONG,
    LONGEST,
    Draft,
    about,
    can_be_asked,
    of_rows,
    others,
    ours,
)
from .likeness import counts

_RECIPIENTS = re.compile(r"(to|cc|bcc)\b")
_OUTSIDE = re.compile(r"(\d+) recipients? outside the company")
_WORDS = (
    "Reversible",
    "Partly reversible",
    "Irreversible",
    "Unknown: treat as irreversible",
)
_TO_WHOM = f"{CHANGES}, the recipients"


def drafts(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    """Everything that could be asked, the rarest kinds first."""
    yield from _changed(shown, schema)
    yield from of_rows(
        shown.other,
        "given",
        lambda row: f"{CHANGES}, the arguments, row {row}",
        schema,
    )
    yield from _recipients(shown)
    yield from _outside(shown)
    yield from _which_changes(shown)
    yield from _undone(shown)


def _changed(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    known = [change.after for change in shown.changes if can_be_asked(change.after)]
    for row, change in enumerate(shown.changes, 1):
        after = change.after
        if after is None or not can_be_asked(after):
            continue
        before = [change.before] if can_be_asked(change.before) else []
        wordings = (
            about("What will ", change.label, " be after this?"),
            about("Once this has run, what does ", change.label, " say?"),
        )
        could_be = listed(schema, change.path)
        wrong = others(after.text, [*before, *known], could_be)
        yield Draft(f"after:{row}", wordings, after.text, wrong, _place(row))


def _recipients(shown: Presentation) -> Iterator[Draft]:
    rows = [row for row in shown.other if _RECIPIENTS.match(row.path)]
    count = sum(row.cell.kind == "text" for row in rows)
    if not count:
        return
    wordings = ours(
        "How many addresses will get this, copies included?",
        "To how many addresses does this go in all?",
    )
    yield Draft("recipients", wordings, str(count), counts(count), _TO_WHOM)


def _outside(shown: Presentation) -> Iterator[Draft]:
    """From the fact above the page: it is ours, and so are its words."""
    for tag in shown.tags:
        found = _OUTSIDE.fullmatch(tag.text)
        if found is None:
            continue
        wordings = ours(
            "How many people outside the company will get this?",
            "How many of its recipients are outside the company?",
        )
        yield Draft("outside", wordings, found[1], counts(int(found[1])), _TO_WHOM)


def _which_changes(shown: Presentation) -> Iterator[Draft]:
    stays = dict.fromkeys(row.label for row in (*shown.unchanged, *shown.now))
    moves = {change.label for change in shown.changes}
    wrong = tuple(label for label in stays if label not in moves)
    wordings = ours(
        "Which of these does it change?",
        "One of these is different afterwards. Which?",
    )
    for row, change in enumerate(shown.changes, 1):
        if len(change.label) <= LONGEST:
            yield Draft(f"changes:{row}", wordings, change.label, wrong, _place(row))


def _undone(shown: Presentation) -> Iterator[Draft]:
    wordings = ours(
        "After this, can it be undone?",
        "What does the tool declare about taking this back?",
    )
    word = shown.reversal.word
    wrong = tuple(other for other in _WORDS if other != word)
    yield Draft("reversal", wordings, word, wrong, IF_WRONG)


def _place(row: int) -> str:
    return f"{CHANGES}, row {row}"
