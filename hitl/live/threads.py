"""Runs a WSGI application in a fixed pool of threads: one hop to a thread and back.

The body is complete before the call and the response is complete after it, so a thread
never waits for the client and never asks the event loop for anything.
"""

from __future__ import annotations

import asyncio
import contextvars
import io
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from hitl.measurements import EXCHANGE

from .buffering import BufferedResponse, Header, Receive, Scope, Send

Environ = dict[str, Any]
WsgiHeaders = list[tuple[str, str]]


class StartResponse(Protocol):
    """What a WSGI application calls with its status and headers."""

    def __call__(
        self, status: str, headers: WsgiHeaders, exc_info: Any = None, /
    ) -> Callable[[bytes], object]: ...


WsgiApp = Callable[[Environ, StartResponse], Iterable[bytes]]
# Headers that CGI, and so WSGI, names without HTTP_ (RFC 3875, section 4.1).
_UNPREFIXED = {b"content-type": "CONTENT_TYPE"}


class WsgiThreads:
    """The ASGI application that calls a WSGI application in `count` threads. Requests
    beyond that wait in the order in which they came."""

    def __init__(self, app: WsgiApp, count: int) -> None:
        self._app = app
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="wsgi")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        environ = build_environ(scope, await _collect_body(receive))
        # Each request has its own context, so that no variable outlives it.
        context = contextvars.copy_context()
        answer = await asyncio.get_running_loop().run_in_executor(
            self._threads, context.run, call_wsgi, self._app, environ
        )
        await answer.send(send)


async def _collect_body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def call_wsgi(app: WsgiApp, environ: Environ) -> BufferedResponse:
    """Call a WSGI application and return its whole response. Raises what it raises."""
    status, headers, chunks = "", WsgiHeaders(), list[bytes]()

    def start_response(
        line: str, pairs: WsgiHeaders, exc_info: Any = None, /
    ) -> Callable[[bytes], object]:
        nonlocal status, headers
        status, headers = line, pairs
        return chunks.append

    content = app(environ, start_response)
    try:
        chunks.extend(content)
    finally:
        getattr(content, "close", lambda: None)()
    return BufferedResponse(
        int(status.partition(" ")[0]), _encode_headers(headers), b"".join(chunks)
    )


def _encode_headers(headers: WsgiHeaders) -> tuple[Header, ...]:
    """Headers as ASGI wants them, with names in lower case."""
    return tuple(
        (name.lower().encode("latin1"), value.encode("latin1"))
        for name, value in headers
    )


def build_environ(scope: Scope, body: bytes) -> Environ:
    """The WSGI environment (PEP 3333) of an HTTP request whose body is complete.

    CONTENT_LENGTH is the length of this body: a request that was sent in chunks has no
    such header. A header that was sent twice becomes one, joined by a comma.
    """
    host, port = scope.get("server") or ("localhost", 80)
    environ: Environ = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        # WSGI wants the bytes of the path, each as one character.
        "PATH_INFO": scope["path"].encode().decode("latin1"),
        "QUERY_STRING": scope["query_string"].decode("latin1"),
        "SERVER_NAME": host,
        "SERVER_PORT": str(port or 0),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": scope.get("scheme", "http"),
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
        EXCHANGE: scope.get(EXCHANGE),
    }
    if client := scope.get("client"):
        environ["REMOTE_ADDR"] = client[0]
        environ["REMOTE_PORT"] = str(client[1])
    for name, value in scope["headers"]:
        if name != b"content-length":
            _add_header(environ, name, value.decode("latin1"))
    return environ


def _add_header(environ: Environ, name: bytes, text: str) -> None:
    key = _UNPREFIXED.get(name)
    if key is None:
        key = f"HTTP_{name.decode('latin1').upper().replace('-', '_')}"
    environ[key] = f"{environ[key]},{text}" if key in environ else text
