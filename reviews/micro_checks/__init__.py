"""Attention checks: whether the reader looked at what will really happen. Pure.

Every word of a question is ours, every answer a decoded fact of the presentation; what
the agent says of itself is never asked about. The same seed gives the same question,
so that it stays the same when the panel is shown again (ux.md 3.7).
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.schemas import Schema
from reviews.attention_checks import questions
from reviews.presenters.shapes import Part, Presentation

from . import viewed
from .dice import Dice

NONE_OF_THESE = "None of these"
WRONG = 3  # answers beside the right one
# In one of so many questions the right answer is "none of these", if there are wrong
# ones enough that nobody tells it by their number.
NOT_THERE = 5


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


def is_due(seed: bytes, one_in: int) -> bool:
    """Whether this decision is one of those that are asked about; 0 is never."""
    return one_in > 0 and Dice(seed + b"due").throw(one_in) == 0


def question(shown: Presentation, seed: bytes, schema: Schema) -> Question | None:
    """The question of this seed; None when nothing of the presentation can be asked.
    `schema` is that of the tool's arguments: wrong answers are what it would allow."""
    drafts = [*questions.drafts(shown, schema), *viewed.drafts(shown, schema)]
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
