"""Attention checks: whether the reviewer looked at what will really happen. Pure.

Questions are about the fields and arguments of any effect, and about the programs,
files and rows of dedicated views. Every word of a question is Holdpoint's, and so is
every heading that names a place; every answer is a decoded fact of the presentation.
What the agent says about itself is never asked. The same seed gives the same question,
so that it does not change when the panel is shown again (ux.md 3.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from policies.schemas import Schema
from reviews.presenters.arguments import declared
from reviews.presenters.shapes import Part, Presentation, texts
from reviews.presenters.views import Command, Difference, Group

from .distractors import (
    CHANGES,
    IF_WRONG,
    LONGEST,
    PROGRAMS,
    Dice,
    Draft,
    Wordings,
    about,
    can_be_asked,
    choices,
    counts,
    field_of,
    name_of,
    near_misses,
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


def field_drafts(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    """Draft every question about fields and arguments, the rarest kinds first."""
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
    """Ask how many addresses there are, if each row is one plain address and none
    repeats."""
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
    """Ask about the fact tag above the page, whose words are Holdpoint's."""
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
    """Ask which field changes.

    Not asked about an effect that only removes: more may go than the page can list.
    """
    if all(change.after is None for change in shown.changes):
        return
    wrong = _stays(shown, schema)
    wordings = ours("Which of these does it change?", "Which of these will change?")
    for row, change in enumerate(shown.changes, 1):
        if len(change.label) <= LONGEST:
            yield Draft(f"changes:{row}", wordings, change.label, wrong, _place(row))


def _stays(shown: Presentation, schema: Schema) -> tuple[str, ...]:
    """List the labels of fields that are known to stay.

    The reader gave their value, the tool's schema declares them, and the argument has
    the same value. A field that no argument names may change unseen, and so may a list
    of which another entry changes.
    """
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


PROGRAM = "program"  # how a command view describes its first word


def view_drafts(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    """Draft every question about the views, in the order of the page."""
    for number, view in enumerate(shown.views, 1):
        if isinstance(view, Group):
            place = partial(_row, view)
            yield from of_rows(view.rows, f"view:{number}", place, schema, shown)
        elif isinstance(view, Command):
            yield from _command(view, number)
        elif isinstance(view, Difference):
            yield from _difference(view, number)


def _view_place(view: Group | Command | Difference) -> str:
    return f"{CHANGES}, {view.title}"


def _row(view: Group, row: int) -> str:
    return f"{_view_place(view)}, row {row}"


def _command(view: Command, number: int) -> Iterator[Draft]:
    """Ask about a command that was parsed to its end: otherwise a wrong answer might be
    right."""
    if view.problem or any(one.problem for one in view.inside):
        return
    words = set(re.findall(r"[\w-]+", " ".join(texts(view))))
    wrong = tuple(one for one in PROGRAMS if one not in words)
    wordings = ours(
        "Which of these programs does the command name?",
        "Which of these programs does the command call by name?",
    )
    for at, program in enumerate(_programs(view), 1):
        yield Draft(
            f"program:{number}.{at}", wordings, program, wrong, _view_place(view)
        )
    if len(view.steps) > 1:
        wordings = ours(
            "Of how many steps is the command made?",
            "How many steps does the command have?",
        )
        right = len(view.steps)
        yield Draft(
            f"steps:{number}",
            wordings,
            str(right),
            counts(right),
            _view_place(view),
            True,
        )


def _programs(view: Command) -> list[str]:
    steps = [*view.steps, *(step for one in view.inside for step in one.steps)]
    found = [t.text for step in steps for t in step.tokens if t.means == PROGRAM]
    return [one for one in dict.fromkeys(found) if 0 < len(one.strip()) <= LONGEST]


def _difference(view: Difference, number: int) -> Iterator[Draft]:
    paths = {path for file in view.files for path in (file.path, file.was)}
    wordings = ours(
        "Which of these files does it change?", "Which of these files will change?"
    )
    for at, file in enumerate(view.files, 1):
        wrong = [one for one in near_misses(file.path) if one not in paths]
        short = tuple(one for one in dict.fromkeys(wrong) if len(one) <= LONGEST)
        if len(file.path) <= LONGEST:
            draft = f"file:{number}.{at}"
            yield Draft(draft, wordings, file.path, short, _view_place(view))
    yield from _counted(view, number)


def _counted(view: Difference, number: int) -> Iterator[Draft]:
    for kind, does, count in (
        ("added", "add", sum(file.added for file in view.files)),
        ("removed", "remove", sum(file.removed for file in view.files)),
    ):
        if not view.lines:
            return
        wordings = ours(
            f"How many lines does it {does} in all?",
            f"By the count of this page, how many lines does it {does}?",
        )
        yield Draft(
            f"{kind}:{number}",
            wordings,
            str(count),
            counts(count),
            _view_place(view),
            True,
        )


NONE_OF_THESE = "None of these"
WRONG = 3  # wrong answers, beside the right one
# In one of this many questions the right answer is "none of these", if there are enough
# wrong answers that their number does not give it away.
NOT_THERE = 5


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its answers; the last is always `NONE_OF_THESE`."""

    id: str  # kind and row, without any word of an agent
    parts: tuple[Part, ...]
    options: tuple[str, ...]
    right: int
    look: str  # where the answer is, as the page names the place

    def is_right(self, answer: int) -> bool:
        return answer == self.right


def is_due(seed: bytes, one_in: int) -> bool:
    """Whether this decision is one of those with a question; never if `one_in` is 0."""
    return one_in > 0 and Dice(seed + b"due").throw(one_in) == 0


def question(shown: Presentation, seed: bytes, schema: Schema) -> Question | None:
    """Choose the question of this seed; None if nothing of the presentation can be
    asked.

    `schema` is the schema of the tool's arguments: wrong answers are values that it
    would allow.
    """
    drafts = [*field_drafts(shown, schema), *view_drafts(shown, schema)]
    drafts = [one for one in drafts if len(one.wrong) >= 2]
    if not drafts:
        return None
    dice = Dice(seed)
    draft = dice.pick(drafts)
    wrong = dice.mixed(draft.wrong)[:WRONG]
    rare = dice.throw(NOT_THERE) == 0
    absent = rare and draft.may_be_absent and len(wrong) == WRONG
    offered = wrong if absent else [draft.right, *wrong[: WRONG - 1]]
    options = [*dice.mixed(offered), NONE_OF_THESE]
    right = len(options) - 1 if absent else options.index(draft.right)
    wording = dice.pick(draft.wordings)
    return Question(draft.id, wording, tuple(options), right, draft.look)
