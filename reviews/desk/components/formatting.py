"""How a deadline looks: the moment, what is left of it, and a clock in quarters."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reviews import freezing
from reviews.models import ApprovalRequest

URGENT = 0.2  # of the whole time; never louder before (ux.md 1b, Swaroop 2023)


@dataclass(frozen=True, slots=True)
class Clock:
    """A deadline as a page shows it; `quarters` of the face are still full. `frozen`:
    what is left stays as it is, under a declared incident."""

    at: datetime
    left: timedelta
    quarters: int
    urgent: bool
    frozen: bool = False


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


def of(request: ApprovalRequest, now: datetime) -> Clock:
    """The clock of an open request, which may stand still."""
    frozen = request.frozen_through is not None
    left = freezing.left(request, now)
    found = until(now + left, since=now + left - freezing.waited(request), now=now)
    urgent = found.urgent and not frozen
    return replace(found, at=request.expires_at, urgent=urgent, frozen=frozen)
