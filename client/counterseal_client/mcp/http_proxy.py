"""The proxy over streamable HTTP: a server at one address, the gate's proxy in front of
it at another. Both protocol eras pass, with sessions and without."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import httpx2
from mcp.server.transport_security import (
    TransportSecurityMiddleware,
    TransportSecuritySettings,
)
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..errors import CountersealError
from .gated_calls import ToolGate, build_session_thread, build_thread
from .http_upstream import (
    INTERNAL_ERROR,
    LARGEST_EVENT,
    SESSION_HEADER,
    THREAD_HEADER,
    HttpUpstream,
    parse_message,
    select_headers,
)
from .interception import ANSWERED, REWRITTEN, Caller, GatedAnswer, Interceptor
from .results import Json, RemoteError
from .tasks import TaskRunner
from .tool_list import ImportedTools

THREAD_NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}")
PING_SECONDS = 10.0
PING = b": waiting\r\n\r\n"
CONNECT_SECONDS = 10.0
LARGEST_REQUEST = 4 * 1024 * 1024
"""Bytes of one request of a client."""
PARSE_ERROR, INVALID_REQUEST = -32700, -32600


@dataclass(slots=True)
class HttpAnswer:
    """The answer to one request of a client: JSON if the result comes soon and alone, a
    stream of events otherwise."""

    send: Send
    streaming: bool = False
    ended: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    async def send_event(self, message: Json | None) -> None:
        """Send a message before the result; None keeps the connection open. After the
        result there is nobody to send it to: the call goes on as a task."""
        async with self.lock:
            if self.ended:
                return
            if not self.streaming:
                self.streaming = True
                await self._begin(200, "text/event-stream")
            text = PING if message is None else _encode_event(json.dumps(message))
            await self._write(text, more=True)

    async def send_result(self, message: Json) -> None:
        """Send the result, or the error, and end the answer."""
        async with self.lock:
            self.ended = True
            if self.streaming:
                await self._write(_encode_event(json.dumps(message)), more=False)
                return
            await self._begin(200, "application/json")
            await self._write(json.dumps(message).encode(), more=False)

    async def _begin(self, status: int, kind: str) -> None:
        headers = [(b"content-type", kind.encode()), (b"cache-control", b"no-store")]
        await self.send(
            {"type": "http.response.start", "status": status, "headers": headers}
        )

    async def _write(self, body: bytes, *, more: bool) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": more})


def _encode_event(data: str, name: str = "", retry: int | None = None) -> bytes:
    """One event. No text of JSON has a line break, but a server's may."""
    lines = [f"id: {name}"] if name else []
    lines += [] if retry is None else [f"retry: {retry}"]
    lines += ["event: message", *(f"data: {line}" for line in data.split("\n"))]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass(slots=True)
class PassedAnswer:
    """The server's answer on its way to the client. `method` is empty where no result
    changes."""

    send: Send
    method: str
    session: str
    begun: bool = False

    async def begin_response(self, response: httpx2.Response) -> None:
        """Send the status and the headers."""
        headers = select_headers(response.headers)
        if kind := response.headers.get("content-type", ""):
            headers["content-type"] = kind
        self.begun = True
        await self.send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": [(n.encode(), v.encode()) for n, v in headers.items()],
            }
        )

    async def send_body(self, body: bytes) -> None:
        await self.send({"type": "http.response.body", "body": body, "more_body": True})

    async def end_response(self) -> None:
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(slots=True)
class HttpProxy:
    """The proxy as an ASGI endpoint."""

    interceptor: Interceptor
    http: httpx2.AsyncClient
    url: str
    thread: str
    security: TransportSecurityMiddleware
    own_thread: str = field(default_factory=build_thread)
    # The requests that are being answered here, by session and id.
    answering: Counter[tuple[str, str]] = field(default_factory=Counter)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        refused = await self.security.validate_request(
            request, is_post=request.method == "POST"
        )
        if refused is not None:
            await refused(scope, receive, send)
            return
        if request.method != "POST":
            await self._pass_request(request, None, send)
            return
        message = await self._read_message(request)
        if isinstance(message, Response):
            await message(scope, receive, send)
        elif str(message.get("method")) not in ANSWERED:
            await self._pass_request(request, message, send)
        elif message.get("id") is not None:
            await self._answer_request(request, message, send)
        else:  # a notification: nothing waits for its result
            await Response(status_code=202)(scope, receive, send)

    async def _read_message(self, request: Request) -> Json | Response:
        """The one message of the body. A list of messages is refused: it could hold a
        call."""
        body = bytearray()
        try:
            async for chunk in request.stream():
                body += chunk
                if len(body) > LARGEST_REQUEST:
                    return Response(status_code=413)
        except ClientDisconnect:
            return Response(status_code=400)
        message = parse_message(bytes(body).decode("utf-8", "replace"))
        if message is not None:
            return message
        return _build_refusal(PARSE_ERROR, "The body must be one message of JSON-RPC.")

    async def _answer_request(
        self, request: Request, message: Json, send: Send
    ) -> None:
        """Answer a call, and stop waiting for people when the client leaves."""
        answer = HttpAnswer(send)
        upstream = HttpUpstream(self.http, self.url, request.headers, answer.send_event)
        key = (request.headers.get(SESSION_HEADER, ""), json.dumps(message["id"]))
        self.answering[key] += 1
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_watch_client, request, group.cancel_scope)
                group.start_soon(_keep_open, answer)
                result, gated = await self._build_answer(request, message, upstream)
                await answer.send_result(result)
                if gated is not None:
                    self.interceptor.deliver_answer(gated)
                group.cancel_scope.cancel()
        finally:
            self.answering[key] -= 1
            self.answering += Counter()  # forgets what is at zero

    async def _build_answer(
        self, request: Request, message: Json, upstream: HttpUpstream
    ) -> tuple[Json, GatedAnswer | None]:
        name, params = message["id"], message.get("params")
        try:
            caller = self._find_caller(request.headers)
            check_request(name, params)
            answer = await self.interceptor.answer_request(
                message["method"], params or {}, name, caller, upstream
            )
        except RemoteError as error:
            return _build_error(name, error.code, error.message), None
        except (CountersealError, OSError) as error:
            return _build_error(name, INTERNAL_ERROR, str(error)), None
        return {"jsonrpc": "2.0", "id": name, "result": answer.result}, answer

    def _find_caller(self, headers: Mapping[str, str]) -> Caller:
        """The run and the session. Raises RemoteError for a name that is none."""
        session = headers.get(SESSION_HEADER, "")
        given = headers.get(THREAD_HEADER, "")
        if given:
            check_thread(given, "Counterseal-Thread")
            return Caller(given, session)
        if self.thread or not session:
            return Caller(self.thread or self.own_thread, session)
        return Caller(build_session_thread(session), session)

    async def _pass_request(
        self, request: Request, message: Json | None, send: Send
    ) -> None:
        """Hand a request on and its answer back, both as they come, but for results
        that change."""
        headers = select_headers(request.headers)
        if message is not None:
            headers["content-type"] = "application/json"
        content = None if message is None else json.dumps(message).encode()
        method = str(message.get("method")) if message else ""
        passed = PassedAnswer(
            send,
            method if method in REWRITTEN else "",
            request.headers.get(SESSION_HEADER, ""),
        )
        async with anyio.create_task_group() as group:
            group.start_soon(_watch_client, request, group.cancel_scope)
            try:
                async with self.http.stream(
                    request.method, self.url, content=content, headers=headers
                ) as response:
                    await self._pass_response(response, passed)
            except httpx2.TransportError as error:
                text = f"The MCP server does not answer: {error}"
                refusal = _build_refusal(INTERNAL_ERROR, text, status=502)
                if not passed.begun:
                    await refusal(request.scope, request.receive, send)
            group.cancel_scope.cancel()

    async def _pass_response(
        self, response: httpx2.Response, passed: PassedAnswer
    ) -> None:
        kind = response.headers.get("content-type", "")
        if kind.startswith("text/event-stream"):
            await passed.begin_response(response)
            source = httpx2.EventSource(response, max_event_size=LARGEST_EVENT)
            async for event in source:
                data = self._filter_message(event.data, passed)
                if data is not None:
                    await passed.send_body(_encode_event(data, event.id, event.retry))
        else:
            text = (await response.aread()).decode("utf-8", "replace")
            await passed.begin_response(response)
            await passed.send_body((self._filter_message(text, passed) or "").encode())
        await passed.end_response()

    def _filter_message(self, text: str, passed: PassedAnswer) -> str | None:
        """The server's text for the client. None for an answer to a request that is
        being answered here: it could stand for the result of a call that people have
        not decided."""
        message = parse_message(text)
        if message is None or "method" in message:
            return text
        key = (passed.session, json.dumps(message.get("id")))
        if self.answering[key] > 0:
            return None
        result = message.get("result")
        if not passed.method or not isinstance(result, dict):
            return text
        changed = self.interceptor.rewrite_result(passed.method, result)
        return json.dumps({**message, "result": changed})


def check_thread(name: str, where: str) -> None:
    """Raise RemoteError unless the gate takes it as the name of a run."""
    if not THREAD_NAME.fullmatch(name):
        raise RemoteError(
            INVALID_REQUEST,
            f"{where}: write 1 to 128 letters, digits, dots, colons, dashes or"
            " underscores.",
        )


def check_request(name: object, params: object) -> None:
    """Raise RemoteError for a request whose id or params are none."""
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise RemoteError(INVALID_REQUEST, "id: must be a text or a whole number.")
    if params is not None and not isinstance(params, dict):
        raise RemoteError(INVALID_REQUEST, "params: must be an object.")


async def _watch_client(request: Request, scope: anyio.CancelScope) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _keep_open(answer: HttpAnswer) -> None:
    while True:
        await anyio.sleep(PING_SECONDS)
        await answer.send_event(None)


def _build_error(name: object, code: int, text: str) -> Json:
    return {"jsonrpc": "2.0", "id": name, "error": {"code": code, "message": text}}


def _build_refusal(code: int, text: str, *, status: int = 400) -> Response:
    content = json.dumps(_build_error(None, code, text))
    return Response(content, status, media_type="application/json")


def build_http_proxy(
    url: str,
    tool_gate: ToolGate,
    imported: ImportedTools,
    *,
    thread: str,
    path: str = "/mcp",
    hosts: list[str] | None = None,
) -> Starlette:
    """The ASGI application of the proxy for the server at `url`. `hosts` are the names
    by which clients reach it beside this machine's own."""
    names = ["127.0.0.1", "localhost", "[::1]", *(hosts or [])]
    security = TransportSecurityMiddleware(
        TransportSecuritySettings(
            allowed_hosts=[*names, *(f"{name}:*" for name in names)],
            allowed_origins=[
                f"{scheme}://{name}{port}"
                for scheme in ("http", "https")
                for name in names
                for port in ("", ":*")
            ],
        )
    )
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    http = httpx2.AsyncClient(timeout=timeout, follow_redirects=False)
    app = Starlette()

    @asynccontextmanager
    async def serve(_: Starlette) -> AsyncIterator[None]:
        async with http, anyio.create_task_group() as group:
            tasks = TaskRunner(tool_gate, group)
            interceptor = Interceptor(tool_gate, imported, tasks)
            proxy = HttpProxy(interceptor, http, url, thread, security)
            app.router.routes.append(Route(path, endpoint=proxy))
            yield
            group.cancel_scope.cancel()

    app.router.lifespan_context = serve
    return app
