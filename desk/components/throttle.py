"""Rate limits of pages: a pause for reviewers who approve too many in a row, and a
limiter for keys that stick and pages that loop.

A tired reviewer approves whatever they see. Only pages apply this, and only to verdicts
that let something happen: a refusal is never delayed. A batch counts as one decision.
"""

from __future__ import annotations

from collections import deque
from datetime import datetime, timedelta
from threading import Lock
from time import monotonic

from django.db.models import Count, Q

from journal.errors import DomainError, ReviewerRateLimited
from policies.models import Person
from reviews.effects.wording import format_people
from reviews.models import Decision

WINDOW = timedelta(minutes=10)
RETRY_AFTER_S = 60


def find_rate_refusal(
    person: Person, *, most: int, now: datetime
) -> DomainError | None:
    """The refusal of another approval: a Throttle error once this person has made
    `most` decisions in ten minutes, else None. `most` 0 switches it off. One query."""
    count = _count_decisions(person, now - WINDOW) if most else 0
    if count < most or not most:
        return None
    minutes = WINDOW // timedelta(minutes=1)
    return ReviewerRateLimited(
        f"You have decided {format_people(count, 'request')} in {minutes} minutes. "
        "Nothing was recorded. "
        "Wait a minute, then confirm again. Your note is saved.",
        retry_after=RETRY_AFTER_S,
    )


def _count_decisions(person: Person, since: datetime) -> int:
    in_batches = Q(authority__has_key="batch")
    counts = Decision.objects.filter(reviewer=person, at__gt=since).aggregate(
        alone=Count("pk", filter=~in_batches),
        batches=Count("authority__batch", filter=in_batches, distinct=True),
    )
    return int(counts["alone"] + counts["batches"])


MOST_REMEMBERED = 1000  # people; beyond it, idle ones are dropped


class RateLimiter:
    """At most `most` calls in `seconds` seconds for each person. Per process and
    thread-safe; a convenience, not a security control."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        self._times: dict[int, deque[float]] = {}
        self._lock = Lock()

    def allows(self, who: int) -> bool:
        """Whether one more call is within the limit; if so it is counted."""
        now = monotonic()
        with self._lock:
            if len(self._times) > MOST_REMEMBERED:
                self._forget(now)
            times = self._times.setdefault(who, deque())
            while times and times[0] <= now - self.seconds:
                times.popleft()
            if len(times) >= self.most:
                return False
            times.append(now)
            return True

    def _forget(self, now: float) -> None:
        idle = [w for w, t in self._times.items() if t[-1] <= now - self.seconds]
        for who in idle:
            del self._times[who]
