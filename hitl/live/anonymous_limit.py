"""What all who are not known may take from those who are: a small share of the threads,
by turns of the addresses that they call from, and so many failures a minute."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from django.conf import settings

from .buffering import Scope

AT_ONCE = 1  # calls of strangers in Django at a time
# Whoever watches the process asks these; each has a share of its own.
WATCHED = ("/livez", "/readyz")
MOST_WAITING = 200  # of one address
MOST_ADDRESSES = 10_000  # whose failures are remembered
MINUTE_S = 60.0
SAFE = {"GET", "HEAD", "OPTIONS"}


@dataclass
class _Line:
    """The calls of one address that are here now."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    here: int = 0


class Share:
    """So many calls at a time. An address has one of them, so that the addresses take
    turns, whichever of them calls the most."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._lines: dict[str, _Line] = {}

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[bool]:
        """False at once where too many of this address wait already."""
        line = self._lines.setdefault(address, _Line())
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


class Failures:
    """How often an address was refused of late: wrong passwords and keys, whoever's."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, address: str) -> None:
        """One more."""
        now = time.monotonic()
        left = self._left(address, now) + 1
        self._last.pop(address, None)
        self._last[address] = left, now
        if len(self._last) > MOST_ADDRESSES:
            self._last.popitem(last=False)

    def too_many(self, address: str) -> bool:
        most = settings.HOLDPOINT.failures_per_minute
        return self._left(address, time.monotonic()) > most - 1

    def _left(self, address: str, now: float) -> float:
        """They fade: as many as are allowed in a minute are gone after one."""
        count, at = self._last.get(address, (0.0, now))
        rate = settings.HOLDPOINT.failures_per_minute / MINUTE_S
        return max(count - (now - at) * rate, 0.0)


class Strangers:
    """The shares of one process."""

    def __init__(self) -> None:
        self.failures = Failures()
        self._watched = {path: Share() for path in WATCHED}
        self._all = Share()

    def share(self, scope: Scope) -> Share:
        return self._watched.get(scope["path"], self._all)


def tries(scope: Scope) -> bool:
    """Whether this call could be a try to be let in: a password, or a key."""
    return scope["method"] not in SAFE
