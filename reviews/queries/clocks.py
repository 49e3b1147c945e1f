"""How a deadline looks: the moment, what is left of it, and a clock in quarters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

URGENT = 0.2  # of the whole time; never louder before (ux.md 1b, Swaroop 2023)


@dataclass(frozen=True, slots=True)
class Clock:
    """A deadline as a page shows it; `quarters` of the face are still full."""

    at: datetime
    left: timedelta
    quarters: int
    urgent: bool


def until(at: datetime, *, since: datetime, now: datetime) -> Clock:
    """The clock of a deadline that was set at `since`."""
    left = max(at - now, timedelta(0))
    share = left / max(at - since, timedelta(seconds=1))
    return Clock(
        at=at,
        left=left,
        quarters=min(math.ceil(share * 4), 4),
        urgent=share < URGENT,
    )
