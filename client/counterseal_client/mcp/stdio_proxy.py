"""The proxy over stdio: it starts the server, stands between it and the client, and
puts the server's tools behind the gate. Neither of them changes."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from anyio.abc import TaskGroup
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

from ..errors import CountersealError
from .elicitation import Elicitor
from .gated_calls import ToolGate
from .interception import ANSWERED, REWRITTEN, Caller, Interceptor
from .results import Json, RemoteError
from .tasks import TaskRunner
from .tool_list import ImportedTools, Tool

INTERNAL_ERROR = -32603
SESSION = "stdio"
OWN_VARIABLES = "COUNTERSEAL_"
"""How the variables begin that the server does not get: the agent's key is among
them."""


class ServerGone(ConnectionError):
    """The server has ended, or closed its side."""

    def __init__(self) -> None:
        super().__init__("the MCP server has ended; start the proxy again")


class Writer(Protocol):
    """The sending side of a transport of the `mcp` package."""

    async def send(self, item: SessionMessage, /) -> None: ...


@dataclass(slots=True)
class AwaitedAnswer:
    """A request of the proxy's own, or a client's whose result changes."""

    message: JSONRPCResponse | JSONRPCError | None = None
    arrived: anyio.Event = field(default_factory=anyio.Event)


class StdioUpstream:
    """The server behind its pipes. The ids of the proxy's own requests are random: no
    client and no server can guess them."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._awaited: dict[str | int, AwaitedAnswer] = {}
        self.gone = False

    async def send_message(self, message: JSONRPCMessage) -> None:
        """Hand a message to the server. Raises ServerGone."""
        if self.gone:
            raise ServerGone
        try:
            await self._writer.send(SessionMessage(message))
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise ServerGone from None

    async def send_request(
        self, method: str, params: Json, tool: Tool | None = None
    ) -> Json:
        """The server's result. Raises RemoteError, ServerGone."""
        name = f"counterseal-{uuid.uuid4().hex}"
        awaited = self._awaited[name] = AwaitedAnswer()
        try:
            await self.send_message(
                JSONRPCRequest(jsonrpc="2.0", id=name, method=method, params=params)
            )
            await awaited.arrived.wait()
        finally:
            del self._awaited[name]
        if awaited.message is None:
            raise ServerGone
        if isinstance(awaited.message, JSONRPCError):
            error = awaited.message.error
            raise RemoteError(error.code, error.message, error.data)
        return dict(awaited.message.result)

    def take_answer(self, message: JSONRPCResponse | JSONRPCError) -> bool:
        """Whether the message answers a request of the proxy's own."""
        awaited = self._awaited.get(message.id) if message.id is not None else None
        if awaited is None:
            return False
        awaited.message = message
        awaited.arrived.set()
        return True

    def close_requests(self) -> None:
        """The server is gone: nothing more will be answered."""
        self.gone = True
        for awaited in self._awaited.values():
            awaited.arrived.set()


@dataclass(slots=True)
class StdioProxy:
    """One client, one server, and the messages between them."""

    interceptor: Interceptor
    upstream: StdioUpstream
    client: Writer
    group: TaskGroup
    caller: Caller
    elicitor: Elicitor | None = None
    # Requests of the client that are being answered here, and the methods of those that
    # the server has.
    _answering: dict[str | int, anyio.CancelScope] = field(default_factory=dict)
    _forwarded: dict[str | int, str] = field(default_factory=dict)

    async def take_client_message(self, message: JSONRPCMessage) -> None:
        """Answer a message of the client, or hand it on."""
        if isinstance(message, JSONRPCRequest):
            if message.method in ANSWERED:
                self.group.start_soon(self._answer_request, message)
                return
            self._forwarded[message.id] = message.method
            if message.method == "initialize" and self.elicitor is not None:
                params = self.elicitor.declare(message.params)
                message = message.model_copy(update={"params": params})
        # A call without an id waits for no result, and some servers would run it.
        if isinstance(message, JSONRPCNotification) and (
            message.method in ANSWERED or self._cancel_request(message)
        ):
            return
        try:
            await self.upstream.send_message(message)
        except ServerGone as error:
            if isinstance(message, JSONRPCRequest):
                await self._send_error(message.id, INTERNAL_ERROR, str(error))

    async def take_server_message(self, message: JSONRPCMessage) -> None:
        """Take the server's answer to the proxy, or hand a message to the client. An
        answer to nothing that the server was asked is dropped: it could stand for the
        result of a call that people have not decided."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            if self.upstream.take_answer(message):
                return
            method = None if message.id is None else self._forwarded.pop(message.id, "")
            if method == "":
                sys.stderr.write("counterseal: the server answered what nobody asked\n")
                return
            if isinstance(message, JSONRPCResponse) and method in REWRITTEN:
                result = self.interceptor.rewrite_result(method, dict(message.result))
                message = message.model_copy(update={"result": result})
        elif isinstance(message, JSONRPCRequest) and self._takes(message):
            self.group.start_soon(self._answer_elicitation, message)
            return
        await self._send_client(message)

    def _takes(self, request: JSONRPCRequest) -> bool:
        elicitor = self.elicitor
        return elicitor is not None and elicitor.takes(request.method, request.params)

    async def _answer_elicitation(self, request: JSONRPCRequest) -> None:
        assert self.elicitor is not None
        answer: JSONRPCResponse | JSONRPCError
        try:
            result = await self.elicitor.answer(request.params)
            answer = JSONRPCResponse(jsonrpc="2.0", id=request.id, result=result)
        except RemoteError as error:
            fault = ErrorData(code=error.code, message=error.message)
            answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=fault)
        except CountersealError as error:
            fault = ErrorData(code=INTERNAL_ERROR, message=str(error))
            answer = JSONRPCError(jsonrpc="2.0", id=request.id, error=fault)
        with suppress(ServerGone):
            await self.upstream.send_message(answer)

    async def _answer_request(self, request: JSONRPCRequest) -> None:
        if request.id in self._answering:
            text = "This id belongs to a request that has not been answered yet."
            await self._send_error(request.id, -32600, text)
            return
        with anyio.CancelScope() as scope:
            self._answering[request.id] = scope
            try:
                answer = await self.interceptor.answer_request(
                    request.method,
                    request.params or {},
                    request.id,
                    self.caller,
                    self.upstream,
                )
            except RemoteError as error:
                await self._send_error(request.id, error.code, error.message)
            except (CountersealError, OSError) as error:
                await self._send_error(request.id, INTERNAL_ERROR, str(error))
            else:
                if not scope.cancel_called:
                    response = JSONRPCResponse(
                        jsonrpc="2.0", id=request.id, result=answer.result
                    )
                    await self._send_client(response)
                    self.interceptor.deliver_answer(answer)
        del self._answering[request.id]

    def _cancel_request(self, notice: JSONRPCNotification) -> bool:
        """Stop waiting for people when the client gives a request up. The proposal
        stays, and an approved call that has begun is reported all the same."""
        name = (notice.params or {}).get("requestId")
        scope = self._answering.get(name) if isinstance(name, str | int) else None
        if notice.method != "notifications/cancelled" or scope is None:
            return False
        scope.cancel()
        return True

    async def _send_error(self, name: str | int, code: int, text: str) -> None:
        error = ErrorData(code=code, message=text)
        await self._send_client(JSONRPCError(jsonrpc="2.0", id=name, error=error))

    async def _send_client(self, message: JSONRPCMessage) -> None:
        await self.client.send(SessionMessage(message))


def build_server_command(command: Sequence[str]) -> StdioServerParameters:
    """The command of a server, which gets this process's variables but the gate's."""
    variables = os.environ.items()
    return StdioServerParameters(
        command=command[0],
        args=list(command[1:]),
        env={k: v for k, v in variables if not k.startswith(OWN_VARIABLES)},
        cwd=os.getcwd(),
    )


async def run_stdio_proxy(
    command: Sequence[str],
    tool_gate: ToolGate,
    imported: ImportedTools,
    thread: str,
    ask: str = "",
) -> None:
    """Start the server and serve the client of this process until it closes its
    side. `ask` names the people who answer the server's elicitations; without it, the
    client's user does."""
    server = build_server_command(command)
    async with (
        stdio_client(server) as (server_reads, server_writes),
        stdio_server() as (client_reads, client_writes),
        client_writes,  # its end is what lets the process end
        anyio.create_task_group() as group,
    ):
        upstream = StdioUpstream(server_writes)
        tasks = TaskRunner(tool_gate, group)
        interceptor = Interceptor(tool_gate, imported, tasks)
        caller = Caller(thread, SESSION)
        elicitor = Elicitor(tool_gate.gate, ask, thread) if ask else None
        proxy = StdioProxy(
            interceptor, upstream, client_writes, group, caller, elicitor
        )
        group.start_soon(_pump_server, server_reads, proxy)
        async for item in client_reads:
            if isinstance(item, Exception):
                sys.stderr.write(
                    "counterseal: the client sent no message of JSON-RPC\n"
                )
            else:
                await proxy.take_client_message(item.message)
        group.cancel_scope.cancel()


async def _pump_server(reader: Any, proxy: StdioProxy) -> None:
    async for item in reader:
        if isinstance(item, Exception):
            sys.stderr.write("counterseal: the server sent no message of JSON-RPC\n")
        else:
            await proxy.take_server_message(item.message)
    proxy.upstream.close_requests()
