"""Limits what callers without a known key or session may take from the others.

They share a small part of the threads, in turns by client address, and each address may
fail to authenticate only so many times a minute.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from django.conf import settings

from .buffering import Scope

AT_ONCE = 1  # anonymous calls in Django at a time
# Health checks. Each has a limit of its own.
HEALTH_PATHS = ("/livez", "/readyz")
MOST_WAITING = 200  # calls of one address
MOST_ADDRESSES = 10_000  # with remembered failures
MINUTE_S = 60.0
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


@dataclass
class _AddressQueue:
    """The calls of one address that wait or run now."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    here: int = 0


class AddressTurns:
    """Lets `at_once` calls run at a time, and at most one of each address, so that
    addresses take turns however many calls each of them makes."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._lines: dict[str, _AddressQueue] = {}

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[bool]:
        """Wait for a turn. Yields False at once if too many calls of this address wait
        already."""
        line = self._lines.setdefault(address, _AddressQueue())
        line.here += 1
        try:
            if line.here > MOST_WAITING:
                yield False
                return
            async with line.turn, self._free:
                yield True
        finally:
            line.here -= 1
            if not line.here:
                del self._lines[address]


class FailureCounts:
    """The recent failures of each address to authenticate, for all accounts
    together."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, address: str) -> None:
        """Record one more failure."""
        now = time.monotonic()
        left = self._left(address, now) + 1
        self._last.pop(address, None)
        self._last[address] = left, now
        if len(self._last) > MOST_ADDRESSES:
            self._last.popitem(last=False)

    def too_many(self, address: str) -> bool:
        """Whether this address may not try again yet."""
        most = settings.HOLDPOINT.failures_per_minute
        return self._left(address, time.monotonic()) > most - 1

    def _left(self, address: str, now: float) -> float:
        """The failures that still count. They decay at the allowed rate: one minute's
        allowance is gone after one minute."""
        count, at = self._last.get(address, (0.0, now))
        rate = settings.HOLDPOINT.failures_per_minute / MINUTE_S
        return max(count - (now - at) * rate, 0.0)


class AnonymousLimits:
    """The limits on anonymous callers in one process."""

    def __init__(self) -> None:
        self.failures = FailureCounts()
        self._watched = {path: AddressTurns() for path in HEALTH_PATHS}
        self._all = AddressTurns()

    def share(self, scope: Scope) -> AddressTurns:
        return self._watched.get(scope["path"], self._all)


def is_access_attempt(scope: Scope) -> bool:
    """Whether this call could be an attempt to authenticate by password or key."""
    return scope["method"] not in SAFE_METHODS
