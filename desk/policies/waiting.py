"""What a draft would mean for the requests that wait, as rows that lead to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from journal import clock
from policies.models import PolicyVersion
from reviews.effects import describe
from reviews.governance import waiting
from reviews.governance.waiting import Consequence, WaitingPage
from reviews.presenters.shapes import SentencePart

WORDS = {
    Consequence.GONE: "Could not run any more",
    Consequence.MORE: "Would not run as approved now",
    Consequence.LESS: "Would need less if proposed again",
    Consequence.MOVED: "Would wait elsewhere if proposed again",
}


class WaitingRow(NamedTuple):
    """A request for which the draft changes something."""

    request: str
    effect: Sequence[SentencePart]
    queue: str
    was: str
    now: str
    words: str


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """The rows of one page, and what they say together."""

    page: WaitingPage
    rows: Sequence[WaitingRow]

    @property
    def summary(self) -> str:
        """How many requests are affected, in a sentence."""
        page = self.page
        if not page.waiting:
            return "No requests are waiting."
        of = f"Of {page.waiting} waiting {_write_requests(page.waiting)}"
        if page.judged < page.waiting:
            last = page.first + page.judged
            of = f"Of the waiting requests {page.first + 1} to {last} of {page.waiting}"
        parts = [
            f"{page.counts[kind]} {WORDS[kind][0].lower()}{WORDS[kind][1:]}"
            for kind in WORDS
            if page.counts.get(kind)
        ]
        return f"{of}: {', '.join(parts) or 'none is affected'}."


def build_waiting_rows(version: PolicyVersion, first: int = 0) -> WaitingRows:
    """Judge the waiting requests from place `first` on by this draft."""
    page = waiting.judge_waiting(version, now=clock.now(), first=first)
    rows = [
        WaitingRow(
            effect.version.request_id,
            describe.build_effect_sentence(effect.version.revision),
            effect.version.queue.title,
            effect.was,
            effect.now,
            WORDS[effect.consequence],
        )
        for effect in page.effects
    ]
    return WaitingRows(page, rows)


def _write_requests(count: int) -> str:
    return "request" if count == 1 else "requests"
