"""How often a reviewer gets a canary. Pure.

Rare defects are missed more often than frequent ones (Wolfe et al., Nature 2005), so
each reviewer meets about one canary in 52 decisions. More than 3 % would cost time and
train people to look for tricks. Who approves nearly everything or misses canaries gets
more of them. Each decision is as likely to be followed by a canary as any other: what a
reviewer remembers of the last one says nothing about the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

USUAL_GAP, SHORT_GAP = 52, 37  # decisions from one canary to the next, on average
MOST_GAP = 1000  # so that no draw ends the canaries of a reviewer
FEWEST_DECISIONS, FEWEST_CANARIES = 100, 5  # fewer say nothing about a reviewer
UNMODIFIED_LIMIT, CATCH_LIMIT = 0.97, 0.7
# A canary never delays the request of an agent: each one has more time left than this.
LEAST_SLACK = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ReviewerRecord:
    """A reviewer's last 100 decisions, and the canaries that they decided lately."""

    decided: int
    unmodified: int
    canaries: int
    caught: int

    @property
    def needs_more(self) -> bool:
        """Whether canaries come at the higher rate."""
        approves = self.decided >= FEWEST_DECISIONS and (
            self.unmodified > UNMODIFIED_LIMIT * self.decided
        )
        misses = self.canaries >= FEWEST_CANARIES and (
            self.caught < CATCH_LIMIT * self.canaries
        )
        return approves or misses


def compute_gap(record: ReviewerRecord, drawn: float) -> int:
    """After how many decisions the next canary is due. `drawn` is a random number from
    0 up to, but not including, 1. The gaps follow a geometric distribution, which has
    no memory."""
    mean = SHORT_GAP if record.needs_more else USUAL_GAP
    gap = 1 + int(math.log1p(-drawn) / math.log1p(-1 / mean))
    return min(gap, MOST_GAP)


def has_slack(left: timedelta | None) -> bool:
    """Whether a canary delays nothing. `left` is the time that the reviewer's most
    urgent request has left; None if none waits."""
    return left is None or left > LEAST_SLACK
