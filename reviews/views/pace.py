"""A brake against a key that sticks and a page that runs wild. Per process, and no
guard of anything: who is over it asks again in a moment."""

from __future__ import annotations

from collections import deque
from threading import Lock
from time import monotonic

FORGET_AT = 1000  # people; then those who are idle are forgotten


class Pace:
    """At most so many times in so many seconds, for each of many people."""

    def __init__(self, most: int, seconds: float) -> None:
        self.most = most
        self.seconds = seconds
        self._times: dict[int, deque[float]] = {}
        self._lock = Lock()

    def allows(self, who: int) -> bool:
        """Whether one more is within the pace; if so it is counted."""
        now = monotonic()
        with self._lock:
            if len(self._times) > FORGET_AT:
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
