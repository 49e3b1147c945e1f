"""Counts that all web processes of an installation share.

They hold how many calls of a caller wait, how many event streams a person has open, and
how often an address has failed to authenticate. Each is an entry in a sorted set of the
broker that ends by itself, so a process that dies leaves none behind for long.

Each process also counts its own entries. When the broker is away, or has lost its data,
a process applies the limits to these alone.
"""

from __future__ import annotations

import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import structlog
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

PREFIX = "counterseal:count:"
MOST_KEYS = 10_000  # of one process; beyond it, the one that was counted least recently
LONGEST_S = 120  # no entry lives longer
# Seconds: a broker that does not answer within the first is not asked again for the
# second, so that it delays few calls.
TIMEOUT_S, AWAY_S = 0.25, 2.0
# One step, so that two processes cannot both take the last place. The broker's clock
# decides when an entry has ended.
_ENTER = """
local now = redis.call('TIME')
local at = now[1] + now[2] / 1000000
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', at)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[1], at + ARGV[2], ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
return 1
"""
# Nothing for an entry that has ended, or of a broker that has lost it.
_RENEW = """
local now = redis.call('TIME')
redis.call('ZADD', KEYS[1], 'XX', now[1] + now[2] / 1000000 + ARGV[1], ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
return 1
"""

log = structlog.get_logger(__name__)


class OwnCounts:
    """The counts of one process, by key: each entry with the time at which it ends."""

    def __init__(self) -> None:
        self._ends: OrderedDict[str, dict[str, float]] = OrderedDict()

    async def enter(self, key: str, entry: str, *, most: int, seconds: float) -> bool:
        """Count one more entry for so many seconds. False, and nothing is counted, when
        there are `most` already."""
        now = time.monotonic()
        ends = {name: end for name, end in self._ends.get(key, {}).items() if end > now}
        fits = len(ends) < most
        if fits:
            ends[entry] = now + seconds
        self._ends[key] = ends
        self._ends.move_to_end(key)
        if len(self._ends) > MOST_KEYS:
            self._ends.popitem(last=False)
        return fits

    async def renew(self, key: str, entry: str, *, seconds: float) -> None:
        """Let an entry last for so many seconds from now."""
        if entry in self._ends.get(key, {}):
            self._ends[key][entry] = time.monotonic() + seconds

    async def leave(self, key: str, entry: str) -> None:
        """Count an entry no longer."""
        ends = self._ends.get(key, {})
        ends.pop(entry, None)
        if not ends:
            self._ends.pop(key, None)

    async def close(self) -> None:
        """Let go of what the counts need."""


class SharedCounts(OwnCounts):
    """The counts of all processes, in the broker."""

    def __init__(self, redis_url: str) -> None:
        super().__init__()
        self._broker = Redis.from_url(
            redis_url,
            socket_connect_timeout=TIMEOUT_S,
            socket_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._enter = self._broker.register_script(_ENTER)
        self._renew = self._broker.register_script(_RENEW)
        self._away_until = 0.0

    async def enter(self, key: str, entry: str, *, most: int, seconds: float) -> bool:
        if not await super().enter(key, entry, most=most, seconds=seconds):
            return False
        asked = self._enter(keys=[PREFIX + key], args=[most, seconds, entry, LONGEST_S])
        if await self._ask(asked) == 0:
            await super().leave(key, entry)
            return False
        return True

    async def renew(self, key: str, entry: str, *, seconds: float) -> None:
        await super().renew(key, entry, seconds=seconds)
        await self._ask(
            self._renew(keys=[PREFIX + key], args=[seconds, entry, LONGEST_S])
        )

    async def leave(self, key: str, entry: str) -> None:
        await super().leave(key, entry)
        await self._ask(cast(Awaitable[Any], self._broker.zrem(PREFIX + key, entry)))

    async def close(self) -> None:
        await self._broker.aclose()

    async def _ask(self, asked: Awaitable[Any]) -> Any:
        """The broker's answer; None when it is away."""
        if time.monotonic() < self._away_until:
            cast(Any, asked).close()  # a coroutine that was not begun
            return None
        try:
            return await asked
        except (RedisError, OSError) as error:
            self._away_until = time.monotonic() + AWAY_S
            log.warning("counts_alone", error=type(error).__name__)
            return None


@dataclass
class Place:
    """One of `most` entries under a key. `fits` is False when there was no room for it.
    `lasts` leaves the entry to its own end."""

    counts: OwnCounts
    key: str
    most: int
    seconds: float
    fits: bool = False
    lasts: bool = False
    entry: str = field(default_factory=lambda: uuid.uuid4().hex)

    async def enter(self) -> None:
        self.fits = await self.counts.enter(
            self.key, self.entry, most=self.most, seconds=self.seconds
        )

    async def move(self, key: str) -> None:
        """Count the entry under another key. It may not fit there."""
        if key != self.key:
            await self.leave()
            self.key = key
            await self.enter()

    async def renew(self) -> None:
        """Count the entry for as long again."""
        await self.counts.renew(self.key, self.entry, seconds=self.seconds)

    async def leave(self) -> None:
        if self.fits:
            await self.counts.leave(self.key, self.entry)


@asynccontextmanager
async def take_place(
    counts: OwnCounts, key: str, *, most: int, seconds: float
) -> AsyncIterator[Place]:
    """Hold one of `most` places until the block ends, at most for so many seconds
    without a renewal."""
    place = Place(counts, key, most, seconds)
    await place.enter()
    try:
        yield place
    finally:
        if not place.lasts:
            await place.leave()
