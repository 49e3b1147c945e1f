"""What the proxy does with each request of a client, whatever carries it: calls of
tools and questions about tasks are answered here, lists of tools pass through a filter,
and everything else is the server's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import CountersealError
from ..models import Claim
from ..tool_errors import NothingHappened
from .gated_calls import (
    Forward,
    NamedCall,
    RequestedCall,
    ToolGate,
    build_call_meta,
)
from .results import Json, RemoteError, build_error
from .tasks import (
    INVALID_PARAMS,
    TASK_METHODS,
    TASKS_EXTENSION,
    TaskRunner,
    hide_tasks,
    is_task_client,
)
from .tool_list import ImportedTools, RefusedTool, Tool

ANSWERED = TASK_METHODS | {"tools/call"}
"""Methods that never reach the server as the client sent them."""
REWRITTEN = frozenset({"tools/list", "server/discover", "initialize"})
"""Methods whose results change on their way back."""
ENVELOPE = "io.modelcontextprotocol/"
VERSION_META = ENVELOPE + "protocolVersion"
MOST_PAGES = 100


class Upstream(Protocol):
    """The server, as one request of a client reaches it."""

    async def send_request(
        self, method: str, params: Json, tool: Tool | None = None
    ) -> Json:
        """The server's result. `tool` is the called one. Raises RemoteError for an
        error of JSON-RPC, OSError when there is no answer."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Where a request comes from: the run that it belongs to, and the session in which
    its id is unique; empty where the transport has none."""

    thread: str
    session: str = ""


@dataclass(frozen=True, slots=True)
class GatedAnswer:
    """A result for the client. `settled` is the call that ends with its delivery."""

    result: Json
    settled: NamedCall | None = None


@dataclass(slots=True)
class Interceptor:
    """Answers what a proxy does not hand on."""

    tool_gate: ToolGate
    imported: ImportedTools
    tasks: TaskRunner

    async def answer_request(
        self,
        method: str,
        params: Mapping[str, Any],
        request_id: str | int,
        caller: Caller,
        upstream: Upstream,
    ) -> GatedAnswer:
        """The answer to a request of ANSWERED. Raises RemoteError for one that is not
        in order, and OSError where the server must be asked and does not answer."""
        meta = read_meta(params)
        if method != "tools/call":
            forward = self._build_forward(upstream, self._keep_envelope(meta))
            result = await self.tasks.answer_request(method, params, forward)
            return GatedAnswer(complete_result(result, meta))
        name, arguments = read_call(params)
        asked = RequestedCall(
            name, arguments, caller.thread, caller.session, request_id
        )
        try:
            call = self.tool_gate.calls.name_call(asked)
            tool = await self._find_tool(name, meta, upstream)
        except CountersealError as error:
            return GatedAnswer(complete_result(build_error(error), meta))
        as_task = is_task_client(meta)
        kept = self._keep_envelope(meta) if as_task else meta
        forward = self._build_forward(upstream, kept)
        answer = self.tasks.answer_call if as_task else self.tool_gate.answer_call
        result, ended = await answer(call, tool, forward)
        return GatedAnswer(complete_result(result, meta), call if ended else None)

    def deliver_answer(self, answer: GatedAnswer) -> None:
        """The client has the answer: an equal call is another one from now on."""
        if answer.settled is not None:
            self.tool_gate.calls.settle_call(answer.settled)

    def rewrite_result(self, method: str, result: Json) -> Json:
        """A result of REWRITTEN on its way to the client: without tools that may not be
        called, and with the proxy's own tasks instead of the server's."""
        if method == "tools/list" and isinstance(result.get("tools"), list):
            tools = [tool for tool in result["tools"] if isinstance(tool, dict)]
            return {**result, "tools": self.imported.select_tools(tools)}
        capabilities = result.get("capabilities")
        if method == "tools/list" or not isinstance(capabilities, dict):
            return result
        kept = {name: part for name, part in capabilities.items() if name != "tasks"}
        if method == "server/discover":
            declared = kept.get("extensions")
            others = declared if isinstance(declared, dict) else {}
            kept["extensions"] = {**others, TASKS_EXTENSION: {}}
        return {**result, "capabilities": kept}

    def _keep_envelope(self, meta: Json) -> Json:
        """The `_meta` of a request that the proxy sends on its own: what the protocol
        demands of each request, and nothing that belongs to the client's."""
        return {key: part for key, part in meta.items() if key.startswith(ENVELOPE)}

    def _build_forward(self, upstream: Upstream, meta: Json) -> Forward:
        """How an approved call reaches the server: as the tool that was imported, at
        the moment at which the server lists it so."""

        async def forward(name: str, args: Mapping[str, Any], claim: Claim) -> Json:
            try:
                tool = await self._find_tool(name, meta, upstream)
            except OSError as error:
                raise NothingHappened(str(error), code="not_run") from error
            call_meta = build_call_meta(hide_tasks(meta), claim)
            params = {"name": name, "arguments": dict(args), "_meta": call_meta}
            return await upstream.send_request("tools/call", params, tool)

        return forward

    async def _find_tool(self, name: str, meta: Json, upstream: Upstream) -> Tool:
        """The tool as the server lists it now. Raises RefusedTool."""
        self.tool_gate.names.to_policy(name)
        envelope = hide_tasks(self._keep_envelope(meta))
        try:
            tools = await list_tools(upstream, envelope)
        except RemoteError as error:
            raise RefusedTool(f"The server does not list its tools: {error}.") from None
        return self.imported.check_tool(name, tools)


async def list_tools(upstream: Upstream, meta: Json) -> Sequence[Tool]:
    """All tools of the server, page by page. Raises RemoteError; RefusedTool for a list
    without an end."""
    found: list[Tool] = []
    params: Json = {"_meta": meta} if meta else {}
    for _ in range(MOST_PAGES):
        page = await upstream.send_request("tools/list", params)
        tools = page.get("tools")
        found += [tool for tool in tools or [] if isinstance(tool, dict)]
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str):
            return found
        params = {**params, "cursor": cursor}
    raise RefusedTool(f"The server's list of tools has over {MOST_PAGES} pages.")


def read_meta(params: Mapping[str, Any]) -> Json:
    """The `_meta` of a request."""
    meta = params.get("_meta")
    return dict(meta) if isinstance(meta, dict) else {}


def read_call(params: Mapping[str, Any]) -> tuple[str, Json]:
    """The tool and the arguments of a call. Raises RemoteError."""
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not name:
        raise RemoteError(INVALID_PARAMS, "name: name a tool of this server.")
    if arguments is not None and not isinstance(arguments, dict):
        raise RemoteError(INVALID_PARAMS, "arguments: must be an object.")
    return name, dict(arguments or {})


def complete_result(result: Json, meta: Mapping[str, Any]) -> Json:
    """The result as the protocol of the request has it: since 2026-07-28 each says its
    type."""
    if VERSION_META not in meta or "resultType" in result:
        return result
    return {"resultType": "complete", **result}
