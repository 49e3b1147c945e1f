"""How fast Riley works, from the one figure that can be set."""

from __future__ import annotations

from dataclasses import dataclass

MOST_WAITING = 8
"""Cases that may wait for people before Riley takes no new ones."""

QUICK_CASES = 3
"""The first cases, which come quickly so that there is something to see at once."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: between two new cases, between two of the first ones, between two
    steps, for an effect that nobody decides on, for listening, and for a rest."""

    case: float
    opening: float
    step: float
    prompt: float
    listen: float
    rest: float

    @classmethod
    def of(cls, case: float) -> Pace:
        """`case` seconds between two new cases; 0 is as fast as it goes."""
        return cls(
            case=case,
            opening=case / 6,
            step=case / 20,
            prompt=5.0,
            listen=min(5.0, max(1.0, case / 6)),
            rest=max(5.0, case),
        )

    def gap(self, taken: int) -> float:
        """The pause before the next case when `taken` were taken so far."""
        return self.opening if taken < QUICK_CASES else self.case
