"""How often a reviewer gets a canary. Pure.

Rare defects are missed more often than frequent ones (Wolfe et al., Nature 2005), so
each reviewer meets at least one canary in 60 decisions. More than 3 % would cost time
and train people to look for tricks. Who approves nearly everything or misses canaries
gets more of them. A random part keeps the next one from being expected, and the
shortest distance keeps two from following each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

LEAST_GAP, MOST_GAP = 34, 60  # decisions from one canary to the next: 3 %, 1 in 60
USUAL_GAPS, SHORT_GAPS = (45, MOST_GAP), (LEAST_GAP, 40)
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
    0 up to, but not including, 1."""
    least, most = SHORT_GAPS if record.needs_more else USUAL_GAPS
    return least + int(drawn * (most - least + 1))


def has_slack(left: timedelta | None) -> bool:
    """Whether a canary delays nothing. `left` is the time that the reviewer's most
    urgent request has left; None if none waits."""
    return left is None or left > LEAST_SLACK
