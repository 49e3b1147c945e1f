"""The gate inside a Python server of MCP: `MCPServer(extensions=[GateExtension(...)])`
puts its tools behind the gate, whatever transport serves them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.types import CallToolRequestParams
from mcp.types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel
from starlette.requests import Request

from ..errors import CountersealError
from ..gate import AsyncGate
from ..models import Claim
from .gated_calls import (
    CallNames,
    NamedCall,
    RequestedCall,
    ToolGate,
    build_session_thread,
    build_thread,
)
from .http_upstream import SESSION_HEADER, THREAD_HEADER
from .results import Json, RemoteError, build_error
from .tool_list import ToolNames


class GateExtension(Extension):
    """Puts the tools of a server behind the gate.

    `prefix` and `names` give the tools' names in the policy, `free` the tools that do
    not concern the gate: only the server's author can say so. `thread` names the run;
    without it, each session is a run of its own, and so is each process where there are
    no sessions. `wait_seconds`: for how long a call waits for people before the client
    gets a pending result.
    """

    identifier = "counterseal/gate"

    def __init__(
        self,
        gate: AsyncGate,
        *,
        prefix: str = "",
        names: Mapping[str, str] | None = None,
        free: frozenset[str] = frozenset(),
        thread: str = "",
        wait_seconds: float = 25.0,
        rationale: str = "",
    ) -> None:
        self._tool_gate = ToolGate(
            gate,
            ToolNames(prefix, names or {}),
            wait_seconds=wait_seconds,
            rationale=rationale,
            calls=CallNames(),
        )
        self._free = free
        self._thread = thread
        self._own_thread = build_thread()

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        """Propose the call, wait for people, and run the tool with the approved
        arguments."""
        if params.name in self._free:
            return await call_next(ctx)
        try:
            call = self._name_call(params, ctx)
            self._tool_gate.names.to_policy(params.name)
        except CountersealError as error:
            return build_typed(build_error(error), ctx.protocol_version)

        async def forward(name: str, args: Mapping[str, Any], claim: Claim) -> Json:
            # The handler gets this very object: the approved arguments, not the asked.
            params.arguments = dict(args)
            return read_handled(await call_next(ctx))

        tool = {"name": params.name}
        result, ended = await self._tool_gate.answer_call(call, tool, forward)
        if ended:
            self._tool_gate.calls.settle_call(call)
        return build_typed(result, ctx.protocol_version)

    def _name_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any]
    ) -> NamedCall:
        headers = ctx.request.headers if isinstance(ctx.request, Request) else {}
        session = headers.get(SESSION_HEADER, "")
        thread = headers.get(THREAD_HEADER, "") or self._thread
        if not thread:
            thread = build_session_thread(session) if session else self._own_thread
        arguments = dict(params.arguments or {})
        asked = RequestedCall(params.name, arguments, thread, session, ctx.request_id)
        return self._tool_gate.calls.name_call(asked)


def build_typed(result: Json, version: str) -> Json:
    """The result as this version of the protocol has it: since 2026-07-28 each says its
    type."""
    if version not in MODERN_PROTOCOL_VERSIONS:
        return result
    return {"resultType": "complete", **result}


def read_handled(result: HandlerResult) -> Json:
    """What a handler returned, as JSON. Raises RemoteError for nothing."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    if result is None:
        raise RemoteError(-32603, "The tool returned nothing.")
    return dict(result)
