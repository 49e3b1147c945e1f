"""Long polling without holding a thread or a database connection.

A view that has no final answer yet answers at once, with the header
`Counterseal-Wait: <id>;<messages>`. This module keeps the client waiting on the event
loop alone until the hub reports a change of that proposal or question; then it asks the
view again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Any
from urllib.parse import parse_qs, quote

from journal import ids
from journal.errors import InvalidAgentKey

from .buffering import (
    App,
    BodyMemory,
    BufferedResponse,
    ClientDisconnected,
    Receive,
    Scope,
    Send,
    build_refusal,
    call_app,
    read_body,
)
from .callers import API, KnownCallers
from .listen import Hub, Subscription
from .request_figures import mark_waiting
from .shared_counts import OwnCounts, Place, take_place

HEADER = b"counterseal-wait"
MAX_WAIT_S = 60
MAX_EACH = 100  # concurrent waits of one caller, over all processes
GRACE_S = 10  # a wait may end this much later, when its last question takes long
RETRY_AFTER_S = 5
REFUSED = {401, 403}
SECONDS_PATTERN = re.compile(r"[0-9]{1,2}")


class LongPoll:
    """ASGI middleware around an application that answers at once."""

    def __init__(
        self,
        app: App,
        hub: Hub,
        callers: KnownCallers,
        room: BodyMemory,
        counts: OwnCounts,
    ) -> None:
        self.app = app
        self.hub = hub
        self.callers = callers
        self.room = room
        self.counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = drop_ambiguous_headers(scope)
        with contextlib.suppress(ClientDisconnected):
            answer = await self._answer(scope, receive)
            if answer is not None:
                await answer.without(HEADER).send(send)

    async def _answer(self, scope: Scope, receive: Receive) -> BufferedResponse | None:
        """The response, or None when the client has disconnected."""
        seconds, caller = parse_wait_seconds(scope), self.callers.key_of(scope)
        if not seconds:
            return await self._ask(caller, scope, receive)
        async with take_place(
            self.counts, _name_waits(caller), most=MAX_EACH, seconds=seconds + GRACE_S
        ) as place:
            if place.fits:
                return await self._wait(place, caller, scope, receive, seconds)
        # The application was not asked yet, so nothing has been done.
        detail = (
            f"At most {MAX_EACH} calls of one key may wait at once. Nothing was done."
        )
        return build_refusal(scope, 429, "too_many", detail, retry_after=RETRY_AFTER_S)

    async def _ask(
        self, caller: str, scope: Scope, receive: Receive
    ) -> BufferedResponse:
        """Ask the application; hold the body's memory only until it has answered."""
        with self.room.of(caller) as share:
            body = await read_body(scope, receive, share)
            if isinstance(body, BufferedResponse):
                return body
            return await call_app(self.app, scope, body)

    async def _wait(
        self, place: Place, caller: str, scope: Scope, receive: Receive, seconds: int
    ) -> BufferedResponse | None:
        end = asyncio.get_running_loop().time() + seconds
        with self.hub.subscribe() as subscription:
            answer = await self._ask(caller, scope, receive)
            if not answer.header(HEADER):
                return answer
            # The answer may have identified the caller: count the wait for them. If too
            # many of their calls wait, return the answer without waiting.
            await place.move(_name_waits(self.callers.key_of(scope)))
            if not place.fits:
                return answer
            mark_waiting(scope)
            gone = asyncio.ensure_future(receive())  # the body is read: disconnect
            try:
                return await self._settle(scope, answer, subscription, gone, end)
            finally:
                gone.cancel()

    async def _settle(
        self,
        scope: Scope,
        answer: BufferedResponse,
        subscription: Subscription,
        gone: asyncio.Future[Any],
        end: float,
    ) -> BufferedResponse | None:
        """Ask again after each change of the subject, or of what the caller may do,
        until the answer is final or the time is over.

        The first status and headers stay (201 for a proposal that was created). If the
        key is refused by now, so is the call; after any other failure the client gets
        the last answer it was entitled to.
        """
        waits = answer.header(HEADER)
        subject = waits.partition(";")[0]
        caller = self.callers.of(scope)
        subscription.narrow(subject, caller)
        while await self._news(subscription, gone, end):
            # Another call with this key was refused. A hundred that wait need not ask
            # too: each would count as an attempt to guess a key.
            if caller and not self.callers.of(scope):
                return _refuse_key(scope)
            newer = await call_app(self.app, build_recheck(scope, subject), b"")
            if newer.status in REFUSED:
                return _refuse_key(scope)
            if newer.status != 200:
                break
            answer = answer.with_body(newer.body)
            if newer.header(HEADER) != waits:  # final now, or a new message
                break
        return None if gone.done() else answer

    async def _news(
        self, subscription: Subscription, gone: asyncio.Future[Any], end: float
    ) -> bool:
        left = end - asyncio.get_running_loop().time()
        if self.hub.stopping or left <= 0:
            return False
        news = asyncio.ensure_future(subscription.wait())
        try:
            await asyncio.wait(
                {news, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED
            )
            return news.done() and not gone.done() and not self.hub.stopping
        finally:
            news.cancel()


def _refuse_key(scope: Scope) -> BufferedResponse:
    detail = (
        "This key was revoked, or it expired, while the call waited. What the call did"
        " before it waited stays. Ask the agent's owner for a new key."
    )
    return build_refusal(scope, InvalidAgentKey.status, InvalidAgentKey.code, detail)


def _name_waits(caller: str) -> str:
    return f"waits:{caller}"


def parse_wait_seconds(scope: Scope) -> int:
    """The seconds that this client is ready to wait; 0 for none.

    Anything but a whole number from 0 to 60 counts as 0 here; the view refuses it with
    422.
    """
    if not scope["path"].startswith(API) or scope["method"] not in {"GET", "POST"}:
        return 0
    query = scope["query_string"].decode("latin1")
    given = parse_qs(query, keep_blank_values=True).get("wait", [])
    if len(given) != 1 or not SECONDS_PATTERN.fullmatch(given[0]):
        return 0
    seconds = int(given[0])
    return seconds if seconds <= MAX_WAIT_S else 0


def build_recheck(scope: Scope, subject: str) -> Scope:
    """The request for the current state of a proposal or a question, with the client's
    credentials."""
    kind = "questions" if ids.is_id(subject, "q") else "proposals"
    path = f"{API}{kind}/{subject}"
    passed_on = {b"authorization", b"cookie", b"host", b"accept", b"x-forwarded-proto"}
    return {
        **scope,
        "method": "GET",
        "path": path,
        "raw_path": quote(path).encode(),
        "query_string": b"wait=1",  # makes the view set HEADER while it is not final
        "headers": [pair for pair in scope["headers"] if pair[0] in passed_on],
    }


def drop_ambiguous_headers(scope: Scope) -> Scope:
    """Drop headers with an underscore in their names. WSGI maps `x_forwarded_for` and
    `x-forwarded-for` to one name, so one could be forged as the other."""
    headers = [pair for pair in scope["headers"] if b"_" not in pair[0]]
    return {**scope, "headers": headers}
