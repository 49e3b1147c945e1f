"""Written answers: what a person writes before an approval of a request in which the
gate itself found a risk indicator. Pure.

A warning beside a button is read past; a task is not. The question names what was
found. Where the page shows the fact that answers it, the answer is compared with that
fact; otherwise it is recorded as it is. A request that needs two people needs no
written answer: the second person looks instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policies.choices import Risk
from reviews.presenters.shapes import Presentation, RiskIndicator
from reviews.presenters.unicode import to_other_form

from .distractors import CHANGES, is_same_answer

LONGEST_WRITTEN = 500  # characters
SHORTEST_WRITTEN = 10  # of an answer that nothing can check
ID_PREFIX = "written:"
WHY = "Why approve it anyway?"


@dataclass(frozen=True, slots=True)
class WrittenQuestion:
    """The question about one risk indicator. `right` are the answers that the page's
    own facts allow; without any, the answer cannot be checked."""

    indicator: RiskIndicator
    finding: str  # as its tag has it
    text: str
    look: str = ""  # where the answer is, as the page names the place
    right: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return f"{ID_PREFIX}{self.indicator.value}"

    def is_right(self, answer: str) -> bool:
        """Whether the answer is accepted: one of the right ones, or long enough where
        nothing can check it."""
        if not self.right:
            return len(answer.strip()) >= SHORTEST_WRITTEN
        return any(is_same_answer(answer, right) for right in self.right)


# The first indicator that a request has is asked about: the one that a reader most
# easily passes over comes first.
_WORDINGS: Mapping[RiskIndicator, tuple[str, str]] = {
    RiskIndicator.IMITATED_DOMAIN: (
        "Which domain is it? Write it exactly.",
        f"{CHANGES}, the addresses and links",
    ),
    RiskIndicator.CONTRADICTION: (WHY, ""),
    RiskIndicator.FIRST_PAYMENT: (
        "Who receives the money? Write the payee as it is shown.",
        "the figures on top",
    ),
    RiskIndicator.UNUSUAL_AMOUNT: (
        "How much is paid? Write the amount.",
        "the figures on top",
    ),
}


def is_answer_needed(
    indicators: Collection[str],
    risk: Risk,
    steps: Sequence[Mapping[str, Any]],
    levels: Collection[Risk],
) -> bool:
    """Whether an approval needs a written answer: at these risk levels, where one
    person decides alone."""
    people = sum(int(step["required"]) for step in steps)
    return bool(indicators) and risk in levels and people == 1


def build_written_question(shown: Presentation) -> WrittenQuestion | None:
    """The question about the first risk indicator of a presentation, or None."""
    # The first tag of an indicator counts: that of recipients before that of links.
    tags = {tag.indicator: tag for tag in reversed(shown.tags) if tag.indicator}
    for indicator, (text, look) in _WORDINGS.items():
        if tag := tags.get(indicator):
            right = tuple(_list_right_answers(indicator, tag.values))
            if look and not right:
                text, look = WHY, ""
            return WrittenQuestion(indicator, tag.text, text, look, right)
    return None


def _list_right_answers(
    indicator: RiskIndicator, values: Sequence[str]
) -> Iterable[str]:
    yield from values
    if indicator is RiskIndicator.IMITATED_DOMAIN:
        yield from map(to_other_form, values)
    if indicator is RiskIndicator.UNUSUAL_AMOUNT:
        for value in values:  # "899.00 USD": the figure alone is enough
            yield value.rpartition(" ")[0] or value
