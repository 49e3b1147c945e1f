"""Limits what callers without a known key or session may take from the others.

They share a small part of the threads, in turns by client address, and each address may
fail to authenticate only so many times a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from django.conf import settings

from .buffering import Scope
from .callers import METRICS, find_bearer_key
from .shared_counts import OwnCounts, Place, take_place

AT_ONCE = 1  # anonymous calls in Django at a time
# A load balancer, a kubelet and Prometheus are no strangers: each of these paths has a
# share of its own.
HEALTH_PATHS = ("/livez", "/readyz", METRICS)
MOST_WAITING = 200  # calls of one address
MINUTE_S = 60.0
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


@dataclass
class _Queue:
    """The calls of one key that wait or run now."""

    free: asyncio.Semaphore
    here: int = 0


class Turns:
    """Lets `each` calls of one key run at a time, first come, first served."""

    def __init__(self, each: int) -> None:
        self._each = each
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def turn(self, key: str, *, most: int) -> AsyncIterator[bool]:
        """Wait for a turn. Yields False at once if `most` calls of this key wait or run
        already."""
        queue = self._queues.setdefault(key, _Queue(asyncio.Semaphore(self._each)))
        queue.here += 1
        try:
            if queue.here > most:
                yield False
                return
            async with queue.free:
                yield True
        finally:
            queue.here -= 1
            if not queue.here:
                del self._queues[key]


class AddressTurns:
    """Lets `AT_ONCE` calls run at a time, and at most one of each address, so that
    addresses take turns however many calls each of them makes."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_ONCE)
        self._turns = Turns(1)

    @asynccontextmanager
    async def turn(self, address: str) -> AsyncIterator[bool]:
        """Wait for a turn. Yields False at once if too many calls of this address wait
        already."""
        async with self._turns.turn(address, most=MOST_WAITING) as fits:
            if not fits:
                yield False
                return
            async with self._free:
                yield True


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
    # guard: keys-by-get
    return scope["method"] not in SAFE_METHODS or bool(find_bearer_key(scope))
