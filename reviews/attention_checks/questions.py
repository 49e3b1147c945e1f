"""Attention checks: whether the reviewer looked at what will really happen. Pure.

Questions are about the fields and arguments of any effect, and about the programs,
files and rows of dedicated views. Every word of a question is Counterseal's, and so is
every heading that names a place; every answer is a decoded fact of the presentation.
What the agent says about itself is never asked. The same seed gives the same question,
so that it does not change when the panel is shown again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from policies.schemas import Schema
from reviews.presenters.arguments import is_declared
from reviews.presenters.shapes import Presentation, SentencePart, collect_texts
from reviews.presenters.views import CommandView, DifferenceView, GroupView

from .distractors import (
    CHANGES,
    IF_WRONG,
    LONGEST_ANSWER,
    PROGRAMS,
    QuestionDraft,
    SeededRandom,
    build_near_misses,
    build_own_wordings,
    build_row_drafts,
    build_value_drafts,
    build_wrong_counts,
    exclude_same_answers,
    format_row_name,
    parse_field_name,
)

_RECIPIENTS = re.compile(r"(to|cc|bcc)(\[\d+\])?")
_ADDRESS = re.compile(r"[^\s@,;<>]+@[^\s@,;<>]+")
_OUTSIDE = re.compile(r"(\d+) recipients? outside the company")
_REVERSAL_ANSWERS = (
    "Reversible",
    "Partly reversible",
    "Irreversible",
    "Unknown: treat as irreversible",
)
_UNCLEAR = {"Irreversible", "Unknown: treat as irreversible"}
_TO_WHOM = f"{CHANGES}, the recipients"


def build_field_drafts(shown: Presentation, schema: Schema) -> Iterator[QuestionDraft]:
    """Draft every question about fields and arguments, the rarest kinds first."""
    yield from _build_change_drafts(shown, schema)
    yield from build_row_drafts(
        shown.beside,
        "given",
        lambda row: f"{CHANGES}, Arguments, row {row}",
        schema,
        shown,
    )
    on_top = f"{CHANGES}, the arguments stated on top"
    yield from build_row_drafts(shown.stated, "stated", lambda _: on_top, schema, shown)
    yield from _build_recipient_drafts(shown)
    yield from _build_outside_drafts(shown)
    yield from _build_changed_field_drafts(shown, schema)
    yield from _build_reversal_drafts(shown)


def _build_change_drafts(
    shown: Presentation, schema: Schema
) -> Iterator[QuestionDraft]:
    for row, change in enumerate(shown.changes, 1):
        beside = [
            cell
            for other in shown.changes
            for cell in (other.before if other is change else None, other.after)
        ]
        place = _format_change_place(row)
        yield from build_value_drafts(
            f"after:{row}", change, change.after, beside, place, schema, shown
        )


def _build_recipient_drafts(shown: Presentation) -> Iterator[QuestionDraft]:
    """Ask how many addresses there are, if each row is one plain address and none
    repeats."""
    rows = [row for row in shown.other if _RECIPIENTS.fullmatch(row.path)]
    addresses = [row.cell.text.casefold() for row in rows if row.cell.kind == "text"]
    plain = all(_ADDRESS.fullmatch(text) for text in addresses)
    elsewhere = [row.path for row in shown.unchanged]
    elsewhere += [change.path for change in shown.changes]
    if any(_RECIPIENTS.fullmatch(path) for path in elsewhere):
        return
    if not addresses or not plain or len(set(addresses)) < len(addresses):
        return
    yield _build_count_draft(
        "recipients",
        len(addresses),
        _TO_WHOM,
        "How many addresses will get this, copies included?",
        "How many addresses does this go to in total?",
    )


def _build_outside_drafts(shown: Presentation) -> Iterator[QuestionDraft]:
    """Ask about the fact tag above the page, whose words are Counterseal's."""
    for tag in shown.tags:
        if match := _OUTSIDE.fullmatch(tag.text):
            yield _build_count_draft(
                "outside",
                int(match[1]),
                _TO_WHOM,
                "How many recipients outside the company will get this?",
                "How many of its recipients are outside the company?",
            )


def _build_count_draft(
    draft: str, count: int, place: str, *wordings: str
) -> QuestionDraft:
    wrong = build_wrong_counts(count)
    own = build_own_wordings(*wordings)
    return QuestionDraft(draft, own, str(count), wrong, place, may_be_absent=True)


def _build_changed_field_drafts(
    shown: Presentation, schema: Schema
) -> Iterator[QuestionDraft]:
    """Ask which field changes, but not of an effect that only removes: more may go than
    the page can list."""
    if all(change.after is None for change in shown.changes):
        return
    wrong = _list_unchanged_labels(shown, schema)
    wordings = build_own_wordings(
        "Which of these does it change?", "Which of these will change?"
    )
    for row, change in enumerate(shown.changes, 1):
        if len(change.label) <= LONGEST_ANSWER:
            place = _format_change_place(row)
            yield QuestionDraft(f"changes:{row}", wordings, change.label, wrong, place)


def _list_unchanged_labels(shown: Presentation, schema: Schema) -> tuple[str, ...]:
    """List the labels of fields that are known to stay: the reader gave their value,
    the schema declares them, and the argument has the same value. A field that no
    argument names may change unseen, and so may a list of which another entry
    changes."""
    moves = [parse_field_name(change.path) for change in shown.changes]
    labels = [format_row_name(change) for change in shown.changes]
    labels += [format_row_name(row) for row in (*shown.now, *shown.other)]
    stays = [
        format_row_name(row)
        for row in shown.unchanged
        if is_declared(schema, row.path) and parse_field_name(row.path) not in moves
    ]
    return exclude_same_answers(stays, labels)


def _build_reversal_drafts(shown: Presentation) -> Iterator[QuestionDraft]:
    word = shown.reversal.word
    wordings = build_own_wordings(
        f"According to “{IF_WRONG}”, can this be undone?",
        f"What does “{IF_WRONG}” say: can this be undone?",
    )
    unclear = _UNCLEAR if word in _UNCLEAR else {word}
    wrong = tuple(other for other in _REVERSAL_ANSWERS if other not in unclear)
    yield QuestionDraft("reversal", wordings, word, wrong, IF_WRONG)


def _format_change_place(row: int) -> str:
    return f"{CHANGES}, row {row}"


PROGRAM_MEANING = "program"  # how a command view describes its first word


def build_view_drafts(shown: Presentation, schema: Schema) -> Iterator[QuestionDraft]:
    """Draft every question about the views, in the order of the page."""
    for number, view in enumerate(shown.views, 1):
        if isinstance(view, GroupView):
            place = partial(_format_row_place, view)
            yield from build_row_drafts(
                view.rows, f"view:{number}", place, schema, shown
            )
        elif isinstance(view, CommandView):
            yield from _build_command_drafts(view, number)
        elif isinstance(view, DifferenceView):
            yield from _build_file_drafts(view, number)


def _format_view_place(view: GroupView | CommandView | DifferenceView) -> str:
    return f"{CHANGES}, {view.title}"


def _format_row_place(view: GroupView, row: int) -> str:
    return f"{_format_view_place(view)}, row {row}"


def _build_command_drafts(view: CommandView, number: int) -> Iterator[QuestionDraft]:
    """Ask about a command that was parsed to its end: otherwise a wrong answer might be
    right."""
    if view.problem or any(text.problem for text in view.inside):
        return
    words = set(re.findall(r"[\w-]+", " ".join(collect_texts(view))))
    wrong = tuple(program for program in PROGRAMS if program not in words)
    wordings = build_own_wordings(
        "Which of these programs does the command name?",
        "Which of these programs does the command call by name?",
    )
    place = _format_view_place(view)
    for at, program in enumerate(_list_programs(view), 1):
        yield QuestionDraft(f"program:{number}.{at}", wordings, program, wrong, place)
    if len(view.steps) > 1:
        yield _build_count_draft(
            f"steps:{number}",
            len(view.steps),
            place,
            "The command has how many steps?",
            "How many steps does the command have?",
        )


def _list_programs(view: CommandView) -> list[str]:
    steps = [*view.steps, *(step for text in view.inside for step in text.steps)]
    programs = [
        t.text for step in steps for t in step.tokens if t.means == PROGRAM_MEANING
    ]
    return [
        program
        for program in dict.fromkeys(programs)
        if 0 < len(program.strip()) <= LONGEST_ANSWER
    ]


def _build_file_drafts(view: DifferenceView, number: int) -> Iterator[QuestionDraft]:
    paths = {path for file in view.files for path in (file.path, file.was)}
    wordings = build_own_wordings(
        "Which of these files does it change?", "Which of these files will change?"
    )
    place = _format_view_place(view)
    for at, file in enumerate(view.files, 1):
        near = dict.fromkeys(build_near_misses(file.path))
        wrong = (path for path in near if path not in paths)
        short = tuple(path for path in wrong if len(path) <= LONGEST_ANSWER)
        if len(file.path) <= LONGEST_ANSWER:
            yield QuestionDraft(
                f"file:{number}.{at}", wordings, file.path, short, place
            )
    if not view.lines:
        return
    added = sum(file.added for file in view.files)
    removed = view.lines - added
    for kind, does, count in (("added", "add", added), ("removed", "remove", removed)):
        yield _build_count_draft(
            f"{kind}:{number}",
            count,
            place,
            f"How many lines does it {does} in total?",
            f"According to this page, how many lines does it {does}?",
        )


NONE_OF_THESE = "None of these"
WRONG_ANSWERS = 3  # wrong answers, beside the right one
# In one of this many questions the right answer is "none of these", if there are enough
# wrong answers that their number does not give it away.
ABSENT_ONE_IN = 5


@dataclass(frozen=True, slots=True)
class AttentionQuestion:
    """One question with its answers; the last is always `NONE_OF_THESE`."""

    id: str  # kind and row, without any word of an agent
    parts: tuple[SentencePart, ...]
    options: tuple[str, ...]
    right: int
    look: str  # where the answer is, as the page names the place

    def is_right(self, answer: int) -> bool:
        return answer == self.right

    @property
    def digest(self) -> str:
        """What identifies the question with its answers: the question about an edit
        changes with the edit."""
        text = "\0".join([self.id, *self.options])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_check_due(seed: bytes, one_in: int) -> bool:
    """Whether this decision is one of those with a question; never if `one_in` is 0."""
    return one_in > 0 and SeededRandom(seed + b"due").throw(one_in) == 0


def build_question(
    shown: Presentation, seed: bytes, schema: Schema
) -> AttentionQuestion | None:
    """Choose the question of this seed; None if nothing of the presentation can be
    asked. `schema` is the schema of the tool's arguments: wrong answers are values that
    it would allow."""
    drafts = [*build_field_drafts(shown, schema), *build_view_drafts(shown, schema)]
    drafts = [draft for draft in drafts if len(draft.wrong) >= 2]
    if not drafts:
        return None
    dice = SeededRandom(seed)
    draft = dice.pick(drafts)
    wrong = dice.mixed(draft.wrong)[:WRONG_ANSWERS]
    rare = dice.throw(ABSENT_ONE_IN) == 0
    absent = rare and draft.may_be_absent and len(wrong) == WRONG_ANSWERS
    offered = wrong if absent else [draft.right, *wrong[: WRONG_ANSWERS - 1]]
    options = [*dice.mixed(offered), NONE_OF_THESE]
    right = len(options) - 1 if absent else options.index(draft.right)
    wording = dice.pick(draft.wordings)
    return AttentionQuestion(draft.id, wording, tuple(options), right, draft.look)
