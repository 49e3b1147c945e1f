"""Limits each caller, so that a flood of calls delays only its own caller.

Each caller's API calls share some of the threads. A caller who was told to come back
later gets the same answer again without asking Django. All anonymous callers share one
small limit (`anonymous_limit`).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from .anonymous_limit import (
    SAFE_METHODS,
    AnonymousLimits,
    Turns,
    is_access_attempt,
)
from .buffering import (
    App,
    BufferedResponse,
    Receive,
    Scope,
    Send,
    build_refusal,
    call_app,
    read_body,
)
from .callers import (
    ACCESS,
    ANSWERED,
    API,
    BROKEN,
    KEYED,
    KnownCallers,
    format_client_address,
)

PROPOSALS = {f"{API}proposals", f"{ACCESS}requests"}
AT_ONCE = 3  # one caller's API calls in Django at a time; leaves a thread for others
MOST_QUEUED = 200  # waiting calls of one caller; more are refused at once
COME_BACK_S, STRANGERS_BACK_S = 1, 10
REPEAT_S = 1.0  # how long a 429 is repeated for the caller's proposals
REFUSALS_HEADER = (
    b"counterseal-unasked"  # refusals repeated since Django was last asked
)


@dataclass
class _RepeatedRefusal:
    """A refusal that is repeated until `until`, and how often it was."""

    answer: BufferedResponse
    until: float
    again: int = 0


class CallerLimit:
    """ASGI middleware around the threads. Requests of known people for pages pass
    unlimited."""

    def __init__(
        self, app: App, callers: KnownCallers, strangers: AnonymousLimits
    ) -> None:
        self.app, self.callers, self.strangers = app, callers, strangers
        self._turns = Turns(AT_ONCE)
        self._told: dict[str, _RepeatedRefusal] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = set_refusal_count(scope, 0)
        caller = self.callers.of(scope)
        if not caller:
            await self._introduce(scope, receive, send)
        elif scope["path"].startswith(KEYED):
            await self._in_line(caller, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _introduce(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve an anonymous call in its turn. If the caller becomes known while it
        waits, serve it as theirs."""
        address = format_client_address(scope)
        async with self.strangers.share(scope).turn(address) as fits:
            if not self.callers.of(scope):
                if not fits:
                    await _refuse_anonymous(scope).send(send)
                elif is_access_attempt(scope):
                    await self._attempt(address, scope, receive, send)
                else:
                    await self.app(scope, receive, send)
                return
        await self(scope, receive, send)

    async def _attempt(
        self, address: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve an anonymous call that may be an attempt to authenticate. It is counted
        before it is known to have failed: two processes may serve one address."""
        async with self.strangers.attempt(address) as attempt:
            if not attempt.fits:
                await _refuse_anonymous(scope).send(send)
                return
            await self.app(scope, receive, send)
            attempt.lasts = has_failed(scope)

    async def _in_line(
        self, caller: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        standing = self._standing(caller, scope)
        if standing is not None:
            await standing.send(send)
            return
        async with self._turns.turn(caller, most=MOST_QUEUED) as fits:
            answer = self._standing(caller, scope) if fits else _refuse_caller(scope)
            if answer is None:  # no refusal came while it waited
                await self._ask(caller, scope, receive, send)
        if answer is not None:
            await answer.send(send)

    def _standing(self, key: str, scope: Scope) -> BufferedResponse | None:
        refusal = self._told.get(key)
        if (
            refusal is None
            or not is_proposal(scope)
            or refusal.until <= _read_loop_clock()
        ):
            return None
        refusal.again += 1
        return refusal.answer

    async def _ask(self, key: str, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_proposal(scope):
            await self.app(scope, receive, send)
            return
        body = await read_body(scope, receive)
        before = self._told.pop(key, None)
        counted = set_refusal_count(scope, before.again if before else 0)
        answer = (
            body
            if isinstance(body, BufferedResponse)
            else await call_app(self.app, counted, body)
        )
        if answer.status == 429:
            self._told[key] = _RepeatedRefusal(answer, _read_loop_clock() + REPEAT_S)
        await answer.send(send)


def _refuse_caller(scope: Scope) -> BufferedResponse:
    detail = "Too many of your calls are already waiting. Nothing was done."
    return build_refusal(scope, 429, "too_many", detail, retry_after=COME_BACK_S)


def _refuse_anonymous(scope: Scope) -> BufferedResponse:
    detail = (
        "Too many calls without a valid key or session come from this address. "
        "Nothing was done. Try again in a minute."
    )
    return build_refusal(scope, 429, "too_many", detail, retry_after=STRANGERS_BACK_S)


def has_failed(scope: Scope) -> bool:
    """Whether the answered attempt let nobody in. A call that only reads fails when its
    key is refused: one that was redirected to TLS was not tried."""
    if scope["method"] in SAFE_METHODS:
        return scope.get(ANSWERED) is False
    return not (scope.get(ANSWERED) or scope.get(BROKEN))


def is_proposal(scope: Scope) -> bool:
    """Whether this call submits a proposal."""
    return scope["method"] == "POST" and scope["path"] in PROPOSALS


def set_refusal_count(scope: Scope, again: int) -> Scope:
    """Tell the view how many refusals were repeated. Drops the header if the client
    sent it."""
    headers = [pair for pair in scope["headers"] if pair[0] != REFUSALS_HEADER]
    if again:
        headers.append((REFUSALS_HEADER, str(again).encode()))
    return {**scope, "headers": headers}


def _read_loop_clock() -> float:
    return asyncio.get_running_loop().time()
