"""What can be asked of a dedicated view: programs, files, and the rows of its groups.
Pure. Every heading that names a place is ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial

from policies.schemas import Schema
from reviews.attention_checks.distractors import CHANGES, LONGEST, Draft, of_rows, ours
from reviews.presenters.shapes import Presentation, texts
from reviews.presenters.views import Command, Difference, Group

from .likeness import PROGRAMS, counts, near_misses

PROGRAM = "program"  # what a command's view calls its first word


def drafts(shown: Presentation, schema: Schema) -> Iterator[Draft]:
    """Everything that could be asked of the views, in the order of the page."""
    for number, view in enumerate(shown.views, 1):
        if isinstance(view, Group):
            place = partial(_row, view)
            yield from of_rows(view.rows, f"view:{number}", place, schema, shown)
        elif isinstance(view, Command):
            yield from _command(view, number)
        elif isinstance(view, Difference):
            yield from _difference(view, number)


def _place(view: Group | Command | Difference) -> str:
    return f"{CHANGES}, {view.title}"


def _row(view: Group, row: int) -> str:
    return f"{_place(view)}, row {row}"


def _command(view: Command, number: int) -> Iterator[Draft]:
    """Of a command that was read to its end: what else ran could be an answer too."""
    if view.problem or any(one.problem for one in view.inside):
        return
    words = set(re.findall(r"[\w-]+", " ".join(texts(view))))
    wrong = tuple(one for one in PROGRAMS if one not in words)
    wordings = ours(
        "Which of these programs does the command name?",
        "Which of these programs does the command call by name?",
    )
    for at, program in enumerate(_programs(view), 1):
        yield Draft(f"program:{number}.{at}", wordings, program, wrong, _place(view))
    if len(view.steps) > 1:
        wordings = ours(
            "Of how many steps is the command made?",
            "How many steps does the command have?",
        )
        right = len(view.steps)
        yield Draft(
            f"steps:{number}", wordings, str(right), counts(right), _place(view), True
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
            yield Draft(draft, wordings, file.path, short, _place(view))
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
            f"{kind}:{number}", wordings, str(count), counts(count), _place(view), True
        )
