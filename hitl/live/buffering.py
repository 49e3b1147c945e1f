"""Buffers one HTTP exchange in memory, so that a client that sends or reads slowly
never occupies one of the few threads that run Django."""

from __future__ import annotations

import asyncio
import io
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

from django.conf import settings
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.security import SecurityMiddleware

from hitl.middleware import Boundary, ContentPolicy, GetResponse, RequestContext
from hitl.problems import build_program_error

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

BODY_LIMIT = 1024 * 1024  # a larger body is refused as `too_large`
FILES = "/api/v1/evidence"  # where a body is a file, which has a limit of its own
# Bytes of all buffered bodies and of one caller's; SMALL_BODY of each body is free.
ROOM, ROOM_EACH, SMALL_BODY = 24 * BODY_LIMIT, 8 * BODY_LIMIT, 16 * 1024
MEMORY_RETRY_AFTER_S = 1


class ClientDisconnected(Exception):
    """The client disconnected before it had sent the whole body."""


@dataclass(frozen=True)
class BufferedResponse:
    status: int
    headers: tuple[Header, ...]
    body: bytes

    def header(self, name: bytes) -> str:
        """The value of a header, given in lower case, or "" if it is missing."""
        return next((v.decode("latin1") for n, v in self.headers if n == name), "")

    def without(self, name: bytes) -> BufferedResponse:
        headers = tuple(pair for pair in self.headers if pair[0] != name)
        return replace(self, headers=headers)

    def with_body(self, body: bytes) -> BufferedResponse:
        """The same status and headers with another body."""
        changed = self.without(b"content-length")
        length = (b"content-length", str(len(body)).encode())
        return replace(changed, headers=(*changed.headers, length), body=body)

    async def send(self, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status}
        await send({**start, "headers": list(self.headers)})
        await send({"type": "http.response.body", "body": self.body})


class ConcurrencyLimit:
    """ASGI middleware that passes at most `most` requests at a time to the
    application."""

    def __init__(self, app: App, most: int) -> None:
        self.app, self._free = app, asyncio.Semaphore(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._free:
            await self.app(scope, receive, send)


class BodyMemory:
    """The memory for request bodies of one process, in bytes: `most` in total and
    `each` for one caller, so that a caller who sends many bodies slowly fills only
    their own part."""

    def __init__(self, most: int = ROOM, each: int = ROOM_EACH) -> None:
        self._most, self._each = most, each
        self._taken: Counter[str] = Counter()

    @contextmanager
    def of(self, caller: str) -> Iterator[BodyReservation]:
        """Reserve memory for one body of this caller; release it on exit."""
        share = BodyReservation(self, caller)
        try:
            yield share
        finally:
            share.give_back()

    def take(self, caller: str, size: int) -> bool:
        """Reserve `size` more bytes; False if they do not fit."""
        fits = self._taken[caller] + size <= self._each
        if not fits or self._taken.total() + size > self._most:
            return False
        self._taken[caller] += size
        return True

    def give_back(self, caller: str, size: int) -> None:
        self._taken[caller] -= size
        if not self._taken[caller]:
            del self._taken[caller]


@dataclass
class BodyReservation:
    """The memory reserved for one body. A small body reserves none, so that a caller
    who fills the memory cannot keep people from signing in."""

    room: BodyMemory
    caller: str
    taken: int = 0

    def fits(self, size: int) -> bool:
        """Reserve what a body of this size needs; False if it does not fit."""
        more = max(size - SMALL_BODY, 0) - self.taken
        if more <= 0:
            return True
        if not self.room.take(self.caller, more):
            return False
        self.taken += more
        return True

    def give_back(self) -> None:
        if self.taken:
            self.room.give_back(self.caller, self.taken)
            self.taken = 0


async def read_body(
    scope: Scope, receive: Receive, share: BodyReservation | None = None
) -> bytes | BufferedResponse:
    """Read the whole body, or return the refusal of one that is too large, arrives too
    slowly, or does not fit into `share`.

    *Raises* ClientDisconnected.
    """
    declared = dict(scope["headers"]).get(b"content-length", b"0")
    if declared.isdigit() and int(declared) > _find_limit(scope):
        return _refuse_large_body(scope)
    try:
        async with asyncio.timeout(settings.COUNTERSEAL.body_timeout):
            return await _collect_body(scope, receive, share)
    except TimeoutError:
        detail = "The body did not arrive in time. Nothing was done. Send it again."
        return _close_connection(build_refusal(scope, 408, "too_slow", detail))


async def _collect_body(
    scope: Scope, receive: Receive, share: BodyReservation | None
) -> bytes | BufferedResponse:
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        body += message.get("body", b"")
        if len(body) > _find_limit(scope):
            return _refuse_large_body(scope)
        if share is not None and not share.fits(len(body)):
            return _refuse_without_memory(scope)
        if not message.get("more_body", False):
            return bytes(body)


def _find_limit(scope: Scope) -> int:
    if scope["path"] == FILES:
        return settings.COUNTERSEAL.evidence_file_bytes
    return BODY_LIMIT


def _refuse_large_body(scope: Scope) -> BufferedResponse:
    most = f"{_find_limit(scope) // BODY_LIMIT} MiB"
    detail = f"The body is larger than {most}. Nothing was stored. Shorten it."
    return _close_connection(build_refusal(scope, 413, "too_large", detail))


def _refuse_without_memory(scope: Scope) -> BufferedResponse:
    detail = "You are sending too many large bodies at once. Nothing was done."
    return _close_connection(
        build_refusal(scope, 429, "too_many", detail, retry_after=MEMORY_RETRY_AFTER_S)
    )


def _close_connection(answer: BufferedResponse) -> BufferedResponse:
    # The rest of the body stays unread, so the connection cannot be reused.
    return replace(answer, headers=(*answer.headers, (b"connection", b"close")))


def build_refusal(
    scope: Scope, status: int, code: str, detail: str, **facts: Any
) -> BufferedResponse:
    """Problem details for a request that Django never sees, with the headers and the
    log line of an answer from Django."""
    response = _add_django_headers(
        _build_request(scope),
        build_program_error(scope["path"], status, code, detail, **facts),
    )
    headers = [(k.lower().encode(), v.encode()) for k, v in response.items()]
    return BufferedResponse(status, tuple(headers), b"").with_body(response.content)


def _build_request(scope: Scope) -> WSGIRequest:
    return WSGIRequest(
        {
            "REQUEST_METHOD": scope["method"],
            "PATH_INFO": scope["path"].encode().decode("latin1"),
            "wsgi.url_scheme": scope.get("scheme", "http"),
            "wsgi.input": io.BytesIO(),
        }
    )


def _add_django_headers(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Run the response through those middleware of settings.MIDDLEWARE that write
    headers, in their order."""
    writers = cast(GetResponse, XFrameOptionsMiddleware(Boundary(lambda _: response)))
    answered = RequestContext(ContentPolicy(writers))(request)
    # Only its response half: the other half would redirect http requests to https.
    last = SecurityMiddleware(lambda _: answered)
    return last.process_response(request, answered)


async def call_app(app: App, scope: Scope, body: bytes) -> BufferedResponse:
    """Send one request to the application and collect its whole response."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    status, headers, content = 500, (), bytearray()

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status, headers = message["status"], tuple(message["headers"])
        content.extend(message.get("body", b""))

    await app(scope, receive, send)
    return BufferedResponse(status, headers, bytes(content))
