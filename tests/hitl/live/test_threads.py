"""A WSGI application behind one hop to a thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIRequest

from hitl.live.buffering import BufferedResponse, Message, Scope, call_app
from hitl.live.threads import StartResponse, WsgiApp, WsgiThreads, build_environ
from tests import loops

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def made(
    method: str = "POST", path: str = "/a", headers: Iterable[tuple[str, str]] = ()
) -> Scope:
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"q=%C3%A4",
        "http_version": "1.1",
        "scheme": "https",
        "server": ("gate.example", 443),
        "client": ("10.0.0.1", 4711),
        "headers": [(name.encode(), value.encode("latin1")) for name, value in headers],
    }


def call(app: WsgiApp, scope: Scope, body: bytes = b"") -> BufferedResponse:
    return loops.run(call_app(WsgiThreads(app, 1), scope, body))


def test_django_reads_of_the_environment_what_the_client_sent() -> None:
    sent = (
        ("content-type", "application/json"),
        ("content-length", "999"),  # of another body: ours is complete
        ("authorization", "Bearer cs_x"),
        ("x-two", "1"),
        ("x-two", "2"),
    )
    request = WSGIRequest(build_environ(made(path="/käse/", headers=sent), b'{"a": 1}'))
    assert request.path == "/käse/"
    assert request.GET["q"] == "ä"
    assert request.body == b'{"a": 1}'
    assert request.content_type == "application/json"
    assert request.headers["Authorization"] == "Bearer cs_x"
    assert request.headers["X-Two"] == "1,2"
    assert request.META["REMOTE_ADDR"] == "10.0.0.1"
    assert request.is_secure()


def test_a_body_that_was_sent_in_chunks_is_read_whole() -> None:
    chunks = [
        {"type": "http.request", "body": b"ab", "more_body": True},
        {"type": "http.request", "body": b"c", "more_body": False},
    ]
    sent: list[Message] = []

    async def receive() -> Message:
        return chunks.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = made(headers=[("transfer-encoding", "chunked")])
    loops.run(WsgiThreads(echo, 1)(scope, receive, send))
    assert sent[1]["body"] == b"abc"


def echo(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    body: bytes = WSGIRequest(environ).body
    start_response("201 Created", [("Content-Type", "text/plain"), ("X-Name", "ä")])
    return [body]


def test_status_headers_and_body_arrive() -> None:
    answer = call(echo, made(), b"hello")
    assert (answer.status, answer.body) == (201, b"hello")
    assert answer.headers == (
        (b"content-type", b"text/plain"),
        (b"x-name", "ä".encode("latin1")),
    )


class Closing:
    """A response in pieces that notes its end."""

    def __init__(self) -> None:
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield b"a"
        yield b"b"

    def close(self) -> None:
        self.closed = True


def test_a_response_is_closed_once_it_is_read() -> None:
    content = Closing()

    def app(environ: dict[str, Any], start_response: StartResponse) -> Closing:
        start_response("200 OK", [])
        return content

    assert call(app, made()).body == b"ab"
    assert content.closed


def test_an_error_is_raised_and_the_thread_serves_the_next() -> None:
    def app(environ: dict[str, Any], start_response: StartResponse) -> list[bytes]:
        if environ["PATH_INFO"] == "/broken":
            raise LookupError("broken")
        return list(echo(environ, start_response))

    async def story() -> BufferedResponse:
        threads = WsgiThreads(app, 1)
        with pytest.raises(LookupError):
            await call_app(threads, made(path="/broken"), b"")
        return await call_app(threads, made(), b"next")

    assert loops.run(story()).body == b"next"


def test_no_variable_of_a_request_outlives_it() -> None:
    seen: list[str] = []

    def app(environ: dict[str, Any], start_response: StartResponse) -> list[bytes]:
        seen.append(WHO.get())
        WHO.set(environ["PATH_INFO"])
        start_response("200 OK", [])
        return []

    async def story() -> None:
        threads = WsgiThreads(app, 1)
        for path in ("/a", "/b"):
            await call_app(threads, made(path=path), b"")

    loops.run(story())
    assert seen == ["nobody", "nobody"]


def test_as_many_requests_run_at_once_as_there_are_threads() -> None:
    together = threading.Barrier(3, timeout=30)

    def app(environ: dict[str, Any], start_response: StartResponse) -> list[bytes]:
        together.wait()
        start_response("200 OK", [])
        return [threading.current_thread().name.encode()]

    async def story() -> list[BufferedResponse]:
        threads = WsgiThreads(app, 3)
        return await asyncio.gather(*[call_app(threads, made(), b"") for _ in range(6)])

    answers = loops.run(story())
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for answer in answers}) == 3
