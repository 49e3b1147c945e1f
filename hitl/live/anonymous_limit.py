"""Limits what callers without a known key or session may take from the others.

They share a small part of the threads, in turns by client address, and each address may
fail to authenticate only so many times a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from django.conf import settings

from .buffering import Scope
from .shared_counts import OwnCounts, Place, take_place

AT_ONCE = 1  # anonymous calls in Django at a time
# Health checks. Each has a limit of its own.
HEALTH_PATHS = ("/livez", "/readyz")
MOST_WAITING = 200  # calls of one address
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


class AnonymousLimits:
    """The limits on anonymous callers. Their share of the threads is that of one
    process; an address's failures are counted over all processes."""

    def __init__(self, counts: OwnCounts) -> None:
        self._counts = counts
        self._watched = {path: AddressTurns() for path in HEALTH_PATHS}
        self._all = AddressTurns()

    def share(self, scope: Scope) -> AddressTurns:
        return self._watched.get(scope["path"], self._all)

    def attempt(self, address: str) -> AbstractAsyncContextManager[Place]:
        """An attempt of this address to authenticate, for all accounts together. If the
        block sets `lasts`, it counts as a failure for a minute. It does not fit when
        too many failed within the last minute."""
        most = settings.COUNTERSEAL.failures_per_minute
        return take_place(
            self._counts, f"failures:{address}", most=most, seconds=MINUTE_S
        )


def is_access_attempt(scope: Scope) -> bool:
    """Whether this call could be an attempt to authenticate by password or key."""
    return scope["method"] not in SAFE_METHODS
