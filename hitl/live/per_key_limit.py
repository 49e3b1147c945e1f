"""One caller's flood is that caller's own affair: its calls share some of the threads,
and who was told to come back later is told so again without asking (T21). All who are
not known have one small share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from .anonymous_limit import Strangers, tries
from .buffering import Answer, App, Receive, Scope, Send, ask, read_body, refusal
from .callers import ANSWERED, API, BROKEN, Callers, address_of

PROPOSALS = f"{API}proposals"
AT_ONCE = 3  # API calls of one caller in Django at a time: a thread is for the others
MOST_QUEUED = 200  # more of one caller than this are refused before anything is done
COME_BACK_S, STRANGERS_BACK_S = 1, 10
STANDS_S = 1.0  # how long a 429 is the answer to the next proposals too
UNASKED = b"holdpoint-unasked"  # how many were answered so since the last one asked


@dataclass
class _Line:
    """The calls of one caller that are here now."""

    free: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    here: int = 0


@dataclass
class _Told:
    """What a caller was told, until when it stands, and how often it was said again."""

    answer: Answer
    until: float
    again: int = 0


class Fair:
    """ASGI middleware around the threads. A page that a known person asks for passes
    through."""

    def __init__(self, app: App, callers: Callers, strangers: Strangers) -> None:
        self.app, self.callers, self.strangers = app, callers, strangers
        self._lines: dict[str, _Line] = {}
        self._told: dict[str, _Told] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = with_count(scope, 0)
        caller = self.callers.of(scope)
        if not caller:
            await self._introduce(scope, receive, send)
        elif scope["path"].startswith(API):
            await self._in_line(caller, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _introduce(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One of those who are not known, unless it becomes known while it waits."""
        address, failures = address_of(scope), self.strangers.failures
        async with self.strangers.share(scope).turn(address) as fits:
            if not self.callers.of(scope):
                if not fits or (tries(scope) and failures.too_many(address)):
                    await _too_many_strangers(scope).send(send)
                    return
                await self.app(scope, receive, send)
                if tries(scope) and not (scope.get(ANSWERED) or scope.get(BROKEN)):
                    failures.count(address)
                return
        await self(scope, receive, send)

    async def _in_line(
        self, caller: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        standing = self._standing(caller, scope)
        if standing is not None:
            await standing.send(send)
            return
        async with self._turn(caller) as fits:
            answer = self._standing(caller, scope) if fits else _too_many(scope)
            if answer is None:  # nothing was said while it stood in line
                await self._ask(caller, scope, receive, send)
        if answer is not None:
            await answer.send(send)

    @asynccontextmanager
    async def _turn(self, key: str) -> AsyncIterator[bool]:
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

    def _standing(self, key: str, scope: Scope) -> Answer | None:
        told = self._told.get(key)
        if told is None or not proposes(scope) or told.until <= _now():
            return None
        told.again += 1
        return told.answer

    async def _ask(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        if not proposes(scope):
            await self.app(scope, receive, send)
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
    detail = "Too many calls of this caller wait already. Nothing was done."
    return refusal(scope, 429, "too_many", detail, retry_after=COME_BACK_S)


def _too_many_strangers(scope: Scope) -> Answer:
    detail = (
        "Too many calls without a valid key or session come from this address. "
        "Nothing was done. Try again in a minute."
    )
    return refusal(scope, 429, "too_many", detail, retry_after=STRANGERS_BACK_S)


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
