"""One agent's flood is that agent's own affair: its calls share a part of the threads,
and who was told to come back later is told so again without asking anybody (T21)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from .exchange import Answer, App, Receive, Scope, Send, ask, read_body, refusal

API = "/api/v1/"
PROPOSALS = f"{API}proposals"
BEARER = b"bearer "
AT_ONCE = 3  # calls of one key in Django at a time: a thread is left for the others
MOST_QUEUED = 200  # more of one key than this are refused before anything is done
COME_BACK_S = 1
STANDS_S = 1.0  # how long a 429 is the answer to the next proposals too
UNASKED = b"holdpoint-unasked"  # how many were answered so since the last one asked


@dataclass
class _Line:
    """The calls of one key that are here now."""

    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    here: int = 0


@dataclass
class _Told:
    """What a key was told, until when it stands, and how often it was said again."""

    answer: Answer
    until: float
    again: int = 0


class Fair:
    """ASGI middleware around the threads. What carries no key passes through."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._lines: dict[bytes, _Line] = {}
        self._told: dict[bytes, _Told] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = key_of(scope)
        if not key:
            await self.app(scope, receive, send)
            return
        standing = self._standing(key, scope)
        if standing is not None:
            await standing.send(send)
            return
        async with self._turn(key) as fits:
            answer = self._standing(key, scope) if fits else _too_many(scope)
            if answer is None:  # nothing was said while it stood in line
                await self._ask(key, scope, receive, send)
        if answer is not None:
            await answer.send(send)

    @asynccontextmanager
    async def _turn(self, key: bytes) -> AsyncIterator[bool]:
        """In the order of coming; False at once where too many wait already."""
        line = self._lines.setdefault(key, _Line())
        line.here += 1
        try:
            if line.here > MOST_QUEUED:
                yield False
                return
            async with line.free:
                yield True
        finally:
            line.here -= 1
            if not line.here:
                del self._lines[key]

    def _standing(self, key: bytes, scope: Scope) -> Answer | None:
        told = self._told.get(key)
        if told is None or not proposes(scope) or told.until <= _now():
            return None
        told.again += 1
        return told.answer

    async def _ask(
        self, key: bytes, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if not proposes(scope):
            await self.app(with_count(scope, 0), receive, send)
            return
        body = await read_body(scope, receive)
        before = self._told.pop(key, None)
        counted = with_count(scope, before.again if before else 0)
        answer = (
            body if isinstance(body, Answer) else await ask(self.app, counted, body)
        )
        if answer.status == 429:
            self._told[key] = _Told(answer, _now() + STANDS_S)
        await answer.send(send)


def _too_many(scope: Scope) -> Answer:
    detail = "Too many calls of this key wait already. Nothing was done."
    return refusal(scope, 429, "too_many", detail, retry_after=COME_BACK_S)


def key_of(scope: Scope) -> bytes:
    """The bearer of a call of the API; empty where there is none."""
    if not scope["path"].startswith(API):
        return b""
    given = dict(scope["headers"]).get(b"authorization", b"")
    return given if given[: len(BEARER)].lower() == BEARER else b""


def proposes(scope: Scope) -> bool:
    return (scope["method"], scope["path"]) == ("POST", PROPOSALS)


def with_count(scope: Scope, again: int) -> Scope:
    """Told to the view, and by nobody else."""
    headers = [pair for pair in scope["headers"] if pair[0] != UNASKED]
    if again:
        headers.append((UNASKED, str(again).encode()))
    return {**scope, "headers": headers}


def _now() -> float:
    return asyncio.get_running_loop().time()
