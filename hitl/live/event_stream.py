"""Event streams: one for each visible page, held on the event loop alone.

A Django view authorises the viewer and produces the first message. This module then
keeps the stream open and sends updates until the page closes, the process stops, or the
viewer may no longer see the page.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, replace
from typing import Any

from desk.live.subscription import Viewer
from hitl.problems import build_problem

from .buffering import (
    App,
    BodyMemory,
    BufferedResponse,
    ClientDisconnected,
    Receive,
    Scope,
    Send,
    call_app,
    read_body,
)
from .callers import format_client_address
from .listen import Hub
from .long_poll import RETRY_AFTER_S, drop_ambiguous_headers
from .page_updates import OpenPage, PageUpdates
from .request_figures import mark_waiting
from .shared_counts import OwnCounts, Place, take_place

PATH = "/events/"
HEADER = b"counterseal-stream"
BEAT = b": beat\n\n"
# The last event when the viewer may not see the page as it is any more. The page asks
# why, instead of reconnecting some seconds later.
ACCESS_CHANGED = b"event: access\ndata: {}\n\n"
BEAT_S = 15.0  # proxies close silent connections
# What changes a viewer's access notifies, and it is checked at once. A notification can
# be lost, and a session also ends with time: within a minute it is checked anyway.
# Random, to spread the checks of many streams.
RECHECK_S = (30.0, 44.0)
# Milliseconds until a browser reconnects. Random, so that the thousands of pages of a
# process that ended do not all reconnect at once.
RETRY_MS = (1_000, 8_000)
MOST = 2_000  # streams of this process
MOST_EACH = 32  # streams of one person, over all processes
COUNTED_S = 60.0  # a stream is counted anew at each recheck
SEND_S = 10.0  # a client that accepts nothing for this long is gone
END_MESSAGE = {"type": "http.response.body", "body": b"", "more_body": False}


class EventStreams:
    """The ASGI application of `PATH`. `app` is the application that authorises
    viewers."""

    def __init__(self, app: App, hub: Hub, room: BodyMemory, counts: OwnCounts) -> None:
        self.app, self.hub, self.room, self.counts = app, hub, room, counts
        self.page_updates = PageUpdates(hub)

    @staticmethod
    def serves(scope: Scope) -> bool:
        return bool(scope["path"] == PATH and scope["method"] == "GET")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope = drop_ambiguous_headers(scope)
        with contextlib.suppress(ClientDisconnected, TimeoutError):
            with self.room.of(format_client_address(scope)) as share:
                body = await read_body(scope, receive, share)
            if isinstance(body, BufferedResponse):
                await body.send(send)
            else:
                await self._open(scope, receive, send)

    async def _open(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self.page_updates.page() as page:
            answer = await self.ask(scope)
            dumped = answer.header(HEADER)
            if not dumped:
                await _replace_redirect(answer).send(send)
                return
            viewer = Viewer.load(dumped)
            async with take_place(
                self.counts,
                f"streams:{viewer.person}",
                most=MOST_EACH,
                seconds=COUNTED_S,
            ) as place:
                # guard: streams-each
                if not (len(self.page_updates) <= MOST and place.fits):
                    await _refuse_stream(answer).send(send)
                    return
                if page.admit(viewer):
                    self.page_updates.count_again()
                await OpenStream(self, page, place, scope, receive, send).run(answer)

    async def ask(self, scope: Scope) -> BufferedResponse:
        """Ask Django who the viewer is."""
        return await call_app(self.app, scope, b"")


@dataclass(eq=False, slots=True)
class OpenStream:
    streams: EventStreams
    page: OpenPage
    place: Place
    scope: Scope
    receive: Receive
    send: Send

    async def run(self, answer: BufferedResponse) -> None:
        """Send the first message and then updates, until the stream ends."""
        mark_waiting(self.scope)
        headers = list(answer.without(HEADER).without(b"content-length").headers)
        head = {"type": "http.response.start", "status": 200, "headers": headers}
        await self.send(head)
        retry = f"retry: {random.randint(*RETRY_MS)}\n\n"  # noqa: S311 no secret
        await self._write(answer.body + retry.encode())
        gone = asyncio.ensure_future(self.receive())
        try:
            await self._tell(gone)
        finally:
            gone.cancel()
        await asyncio.wait_for(self.send(END_MESSAGE), SEND_S)

    async def _tell(self, gone: asyncio.Future[Any]) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + _pick_random(RECHECK_S)
        while await self._goes_on(gone):
            if self.page.doubted or loop.time() >= due:
                self.page.doubted = False
                if not await self._may_look():
                    await self._write(ACCESS_CHANGED)
                    return
                await self.place.renew()
                due = loop.time() + _pick_random(RECHECK_S)
            await self._write(self.page.take() or BEAT)

    async def _goes_on(self, gone: asyncio.Future[Any]) -> bool:
        """Wait for an update or until a beat is due. Returns False when the client has
        gone or the process stops."""
        over = self.streams.hub
        news = self.page.event or self.page.doubted
        if not (news or gone.done() or over.stopping):
            loop = asyncio.get_running_loop()
            woken: asyncio.Future[None] = loop.create_future()

            def wake(_: object = None) -> None:
                if not woken.done():
                    woken.set_result(None)

            self.page.wake = wake
            gone.add_done_callback(wake)
            beat = loop.call_later(BEAT_S, wake)
            await woken
            beat.cancel()
            gone.remove_done_callback(wake)
        return not (gone.done() or over.stopping)

    async def _may_look(self) -> bool:
        dumped = (await self.streams.ask(self.scope)).header(HEADER)
        now, before = Viewer.load(dumped) if dumped else None, self.page.viewer
        return now is not None and before is not None and now.like(before)

    async def _write(self, body: bytes) -> None:
        message = {"type": "http.response.body", "body": body, "more_body": True}
        await asyncio.wait_for(self.send(message), SEND_S)


def _pick_random(between: tuple[float, float]) -> float:
    return random.uniform(*between)  # noqa: S311 no secret


def _replace_redirect(answer: BufferedResponse) -> BufferedResponse:
    """Replace the redirect to the sign-in page, which a stream cannot follow, by
    401."""
    if answer.status not in {301, 302}:
        return answer
    return _replace_with_problem(
        answer, 401, "session", "You are signed out. No events are sent."
    )


def _refuse_stream(answer: BufferedResponse) -> BufferedResponse:
    detail = "Too many pages are open. This page polls for changes instead."
    refused = _replace_with_problem(answer, 429, "too_many", detail)
    wait = (b"retry-after", str(RETRY_AFTER_S).encode())
    return replace(refused, headers=(*refused.headers, wait))


def _replace_with_problem(
    answer: BufferedResponse, status: int, code: str, detail: str
) -> BufferedResponse:
    """Problem details with the other headers of `answer`."""
    content = build_problem(status, code, detail)
    for name in (HEADER, b"location", b"content-type"):
        answer = answer.without(name)
    kind = (b"content-type", content["Content-Type"].encode())
    return BufferedResponse(status, (*answer.headers, kind), b"").with_body(
        content.content
    )
