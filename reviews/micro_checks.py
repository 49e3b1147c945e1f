"""Control questions: whether the reader looked at what will really happen. Pure.

Every word of a question is ours, every answer a decoded fact of the presentation; what
the agent says of itself is never asked about. The same seed gives the same question,
so that it stays the same when the panel is shown again (ux.md 3.7).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from .presenters.shapes import Cell, Part, Presentation, Text, Value

NONE_OF_THESE = "None of these"
WRONG = 3  # answers beside the right one
# In one of so many questions the right answer is "none of these", if there are wrong
# ones enough that nobody tells it by their number.
NOT_THERE = 5
LONGEST = 60
_RECIPIENTS = re.compile(r"(to|cc|bcc)\b")
_DIGIT = re.compile(r"\d")
_WORDS = (
    "Reversible",
    "Partly reversible",
    "Irreversible",
    "Unknown: treat as irreversible",
)
CHANGES, IF_WRONG = "What changes", "If it goes wrong"
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its answers; the last is always `NONE_OF_THESE`."""

    id: str  # kind and row, without a word of anybody's
    parts: tuple[Part, ...]
    options: tuple[str, ...]
    right: int
    look: str  # where the answer stands, as the page names the place

    def is_right(self, answer: int) -> bool:
        return answer == self.right


@dataclass(frozen=True, slots=True)
class _Draft:
    """A question before chance: ways to ask it, the answer, and wrong ones."""

    id: str
    wordings: tuple[tuple[Part, ...], ...]
    right: str
    wrong: tuple[str, ...]
    look: str


class Dice:
    """Numbers that follow from a seed: the same for everybody who has it."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._thrown = 0

    def throw(self, sides: int) -> int:
        """A number from 0 below `sides`."""
        self._thrown += 1
        block = hashlib.sha256(self._seed + self._thrown.to_bytes(4)).digest()
        return int.from_bytes(block[:8]) % sides

    def pick(self, items: Sequence[Item]) -> Item:
        return items[self.throw(len(items))]

    def mixed(self, items: Sequence[Item]) -> list[Item]:
        """The items in an order of chance."""
        left = list(items)
        return [left.pop(self.throw(len(left))) for _ in items]


def is_due(seed: bytes, one_in: int) -> bool:
    """Whether this decision is one of those that are asked about; 0 is never."""
    return one_in > 0 and Dice(seed + b"due").throw(one_in) == 0


def question(shown: Presentation, seed: bytes) -> Question | None:
    """The question of this seed; None when nothing of the presentation can be asked."""
    drafts = [one for one in _drafts(shown) if len(one.wrong) >= 2]
    if not drafts:
        return None
    dice = Dice(seed)
    draft = dice.pick(drafts)
    wrong = dice.mixed(draft.wrong)[:WRONG]
    absent = dice.throw(NOT_THERE) == 0 and len(wrong) == WRONG
    offered = wrong if absent else [draft.right, *wrong[: WRONG - 1]]
    options = [*dice.mixed(offered), NONE_OF_THESE]
    right = len(options) - 1 if absent else options.index(draft.right)
    wording = dice.pick(draft.wordings)
    return Question(draft.id, wording, tuple(options), right, draft.look)


def _drafts(shown: Presentation) -> Iterator[_Draft]:
    """Everything that could be asked, the rarest kinds first."""
    yield from _changed(shown)
    yield from _given(shown)
    yield from _recipients(shown)
    yield from _which_changes(shown)
    yield from _undone(shown)


def _changed(shown: Presentation) -> Iterator[_Draft]:
    known = [change.after for change in shown.changes if _can_be_asked(change.after)]
    for row, change in enumerate(shown.changes, 1):
        after = change.after
        if after is None or not _can_be_asked(after):
            continue
        before = [change.before] if _can_be_asked(change.before) else []
        wordings = (
            _asked("What will ", change.label, " be after this?"),
            _asked("Once this has run, what does ", change.label, " say?"),
        )
        wrong = _others(after.text, [*before, *known])
        yield _Draft(f"after:{row}", wordings, after.text, wrong, _place(row))


def _given(shown: Presentation) -> Iterator[_Draft]:
    known = [row.cell for row in shown.other if _can_be_asked(row.cell)]
    for row, one in enumerate(shown.other, 1):
        if not _can_be_asked(one.cell):
            continue
        wordings = (
            _asked("What does this give as ", one.label, "?"),
            _asked("Which is the value of ", one.label, " here?"),
        )
        same = [cell for cell in known if cell.kind == one.cell.kind]
        wrong = _others(one.cell.text, same)
        look = f"{CHANGES}, the arguments, row {row}"
        yield _Draft(f"given:{row}", wordings, one.cell.text, wrong, look)


def _recipients(shown: Presentation) -> Iterator[_Draft]:
    rows = [row for row in shown.other if _RECIPIENTS.match(row.path)]
    count = sum(row.cell.kind == "text" for row in rows)
    if not count:
        return
    wordings = (
        (Text("How many addresses will get this, copies included?"),),
        (Text("To how many addresses does this go in all?"),),
    )
    others = {count + 1, count + 2, count + 4, max(count - 1, 0)} - {count}
    wrong = tuple(str(number) for number in sorted(others))
    look = f"{CHANGES}, the recipients"
    yield _Draft("recipients", wordings, str(count), wrong, look)


def _which_changes(shown: Presentation) -> Iterator[_Draft]:
    stays = dict.fromkeys(row.label for row in (*shown.unchanged, *shown.now))
    moves = {change.label for change in shown.changes}
    wrong = tuple(label for label in stays if label not in moves)
    wordings = (
        (Text("Which of these does it change?"),),
        (Text("One of these is different afterwards. Which?"),),
    )
    for row, change in enumerate(shown.changes, 1):
        if len(change.label) <= LONGEST:
            yield _Draft(f"changes:{row}", wordings, change.label, wrong, _place(row))


def _undone(shown: Presentation) -> Iterator[_Draft]:
    wordings = (
        (Text("After this, can it be undone?"),),
        (Text("What does the tool declare about taking this back?"),),
    )
    word = shown.reversal.word
    wrong = tuple(other for other in _WORDS if other != word)
    yield _Draft("reversal", wordings, word, wrong, IF_WRONG)


def _asked(before: str, label: str, after: str) -> tuple[Part, ...]:
    return (Text(before), Value(label), Text(after))


def _place(row: int) -> str:
    return f"{CHANGES}, row {row}"


def _can_be_asked(cell: Cell | None) -> bool:
    """A short plain value; what is hidden or empty tells nothing."""
    if cell is None or cell.long or not cell.text.strip():
        return False
    return cell.kind in {"text", "number", "yes or no"} and len(cell.text) <= LONGEST


def _others(right: str, known: Sequence[Cell | None]) -> tuple[str, ...]:
    """Wrong answers that look alike: values from beside it, and near misses."""
    found = [cell.text for cell in known if cell is not None]
    if right in {"yes", "no"}:
        return ()  # two answers are no question
    found += _near_misses(right)
    return tuple(text for text in dict.fromkeys(found) if text != right)


def _near_misses(text: str) -> Iterator[str]:
    """The same text with other digits: swapped, and one more."""
    places = [match.start() for match in _DIGIT.finditer(text)]
    for first, second in pairwise(places):
        if text[first] != text[second] and (text[second] != "0" or first != places[0]):
            yield _with(text, {first: text[second], second: text[first]})
            break
    for place in (*places[:1], *places[-1:]):
        digit = (int(text[place]) + 1) % 10 or 1
        yield _with(text, {place: str(digit)})


def _with(text: str, changed: dict[int, str]) -> str:
    return "".join(changed.get(index, letter) for index, letter in enumerate(text))
