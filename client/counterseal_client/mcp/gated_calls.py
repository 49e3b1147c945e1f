"""One call of a server's tool, from the client's request to the server's result: named,
proposed, awaited, redeemed right before it goes on, and reported."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio

from ..calls import Flow
from ..errors import CountersealError, FieldError, InvalidArguments
from ..gate import AsyncGate
from ..models import Claim, Proposal
from ..operations import Details
from ..policy_schemas import UntakenSchema
from ..signatures import build_call_id
from ..tool_errors import (
    ApprovalPending,
    NothingHappened,
    ReturnedForRevision,
    ToolError,
)
from ..tools import ToolCall, ToolDefinition, ToolOptions, ToolResult, get_claim
from .policy_entries import build_entry, describe_refusal
from .results import (
    Json,
    ReadFailed,
    RemoteError,
    ToolFailed,
    build_error,
    build_failure,
    build_pending,
    build_result,
    build_text,
    record_result,
)
from .tool_list import RefusedTool, Tool, ToolNames

REMEMBERED_REQUESTS = 10_000
"""For how many requests of JSON-RPC a repetition is recognized by its id."""
NOT_RUN = frozenset({-32600, -32601, -32602})
"""Codes of JSON-RPC by which a server says that it did not begin."""
HARMLESS = ("low", "auto")
"""Risk and tier of a proposal whose tool changes nothing, as the policy's
administrators say."""
CALL_ERRORS = (
    CountersealError,
    NothingHappened,
    OSError,
    RemoteError,
    ToolFailed,
    ValueError,
)
"""What can come of a call instead of a result; see `explain_error`."""
IDEMPOTENCY_META = "counterseal/idempotency-key"
GRANT_META = "counterseal/grant"
"""Where the forwarded call has its idempotency key and its signed grant, for a server
that wants to make sure of them."""

Forward = Callable[[str, Mapping[str, Any], Claim], Awaitable[Json]]
"""Sends an approved call to the server: the server's name of the tool, the approved
arguments, the claim. Raises RemoteError, RefusedTool, or whatever breaks."""


def build_thread() -> str:
    """The name of a run at the gate, for a process that was given none."""
    return f"mcp-{uuid.uuid4().hex}"


def build_session_thread(session: str) -> str:
    """The name of the run of one session. A session's id is a secret of its client, so
    the gate gets its digest."""
    return f"mcp-{hashlib.sha256(session.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call as the client asked for it. `session` is empty where the transport has
    none; then a request is not known by its id."""

    tool: str
    arguments: Json
    thread: str
    session: str = ""
    request_id: str | int | None = None


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call with its name at the gate: the `number`-th of this tool with these
    arguments in the run."""

    tool: str
    arguments: Json
    thread: str
    number: int

    @property
    def call_id(self) -> str:
        """The call's id in its thread."""
        return build_call_id(self.tool, self.arguments, self.number)

    @property
    def content(self) -> tuple[str, str]:
        """What makes two calls equal: thread, tool and arguments."""
        return self.thread, build_call_id(self.tool, self.arguments, 1)


@dataclass(slots=True)
class CallNames:
    """Names calls so that a repeated call finds its first proposal.

    A call is repeated under the same id of JSON-RPC when a transport sends it twice,
    and under a new one when a client or a model asks again. So equal calls are one
    call until its end has been delivered; the next one after that is another call. A
    new process begins to count again: with the same thread, it finds what the process
    before it left.
    """

    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _requests: OrderedDict[tuple[str, str | int], NamedCall] = field(
        default_factory=OrderedDict
    )

    def name_call(self, call: RequestedCall) -> NamedCall:
        """The call's name. Raises InvalidArguments for an id that the session has used
        for another call."""
        named = NamedCall(call.tool, call.arguments, call.thread, 1)
        if not call.session or call.request_id is None:
            return self._number_call(named)
        key = (call.session, call.request_id)
        first = self._requests.setdefault(key, self._number_call(named))
        if first.content != named.content:
            fault = FieldError("id", "this session has used it for another call")
            raise InvalidArguments(call.tool, [fault])
        if len(self._requests) > REMEMBERED_REQUESTS:
            self._requests.popitem(last=False)
        return first

    def settle_call(self, call: NamedCall) -> None:
        """The call's end has been delivered: an equal call is a new one from now on."""
        self._counts[call.content] = max(self._counts[call.content], call.number)

    def _number_call(self, call: NamedCall) -> NamedCall:
        number = self._counts[call.content] + 1
        return NamedCall(call.tool, call.arguments, call.thread, number)


class RemoteSignature:
    """The arguments and results of a tool that a JSON Schema describes. The gate checks
    the arguments against the policy's schema, before the approval and after an edit."""

    def __init__(self, tool: Tool) -> None:
        schema = tool.get("inputSchema")
        self._schema = dict(schema) if isinstance(schema, Mapping) else {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arguments, in order."""
        return tuple(self._schema.get("properties", {}))

    def build_schema(self) -> Json:
        """The JSON Schema of the arguments, as the server gives it."""
        return dict(self._schema)

    def bind_arguments(self, *args: Any, **kwargs: Any) -> Json:
        """The named arguments of a call; there are no others."""
        assert not args
        return kwargs

    def dump_arguments(self, arguments: Mapping[str, Any]) -> Json:
        """The arguments, unchanged."""
        return dict(arguments)

    def load_arguments(self, args: Mapping[str, Any]) -> Json:
        """The arguments, unchanged."""
        return dict(args)

    def dump_result(self, result: Any) -> Json:
        """The result as the gate records it."""
        return record_result(result)

    def load_result(self, result: Mapping[str, Any] | None) -> Any:
        return dict(result or {})


@dataclass(slots=True)
class ForwardedCall:
    """The effect of an approved call: it goes to the server. From then on nothing
    cancels it before its outcome is reported. `harmless`: the policy lets the tool pass
    as one that changes nothing."""

    tool: str
    forward: Forward
    seconds: float
    harmless: bool = False
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    performed: ToolResult | None = None

    async def __call__(self, /, **arguments: Any) -> Json:
        """Send the call. Raises ToolFailed or ReadFailed where the tool says that it
        failed, NothingHappened where the server certainly did not begin."""
        self.scope.shield = True
        with anyio.fail_after(self.seconds):
            result = await self._send_call(arguments)
        if result.get("isError"):
            raise ReadFailed(result) if self.harmless else ToolFailed(result)
        kind = result.get("resultType", "complete")
        if kind != "complete":
            text = f"The server answered the approved call with {kind!r}."
            raise ToolFailed(build_text(text))
        self.performed = ToolResult(result, arguments, edited=False)
        return result

    async def _send_call(self, arguments: Json) -> Json:
        try:
            return await self.forward(self.tool, arguments, get_claim())
        except RefusedTool as error:
            raise NothingHappened(str(error), code="tool_changed") from error
        except RemoteError as error:
            if error.code in NOT_RUN:
                raise NothingHappened(str(error), code="not_run") from error
            raise


class RemoteTool(ToolDefinition):
    """A tool of an MCP server as the gate knows it."""

    def __init__(
        self, name: str, tool: Tool, gate: AsyncGate, function: ForwardedCall
    ) -> None:
        super().__init__(
            function,
            gate.operations,
            name=name,
            options=ToolOptions(),
            threshold=gate.approval_required_risk,
            signature=RemoteSignature(tool),
        )
        self.description = str(tool.get("description") or "")
        self._tool = tool
        self._call = function

    def follow_proposal(
        self,
        proposal: Proposal,
        args: Mapping[str, Any] | None,
        wait_seconds: float | None,
    ) -> Flow[ToolResult]:
        """An error of a tool that changes nothing is no riddle
        for people."""
        self._call.harmless = (proposal.risk, proposal.tier) == HARMLESS
        return super().follow_proposal(proposal, args, wait_seconds)

    def build_declaration(self) -> str:
        """The entry for `tools:` of the policy, as `import` prints it."""
        try:
            return build_entry(self.name, self._tool)
        except UntakenSchema as error:
            return describe_refusal(self._tool, str(error))


@dataclass(slots=True)
class ToolGate:
    """Puts the calls of one server's tools behind the gate.

    `wait_seconds`: for how long a call waits for people before the client gets a
    pending result. `call_seconds`: for how long an approved call waits for the server;
    after that its outcome is unknown. `rationale`: why this agent calls tools, for
    tools whose policy demands a text.
    """

    gate: AsyncGate
    names: ToolNames = field(default_factory=ToolNames)
    wait_seconds: float = 25.0
    call_seconds: float = 300.0
    rationale: str = ""
    calls: CallNames = field(default_factory=CallNames)

    async def answer_call(
        self, call: NamedCall, tool: Tool, forward: Forward
    ) -> tuple[Json, bool]:
        """The result for the client, and whether the call has ended. Whatever goes
        wrong is a result too: a model reads it."""
        try:
            result = await self.perform_call(call, tool, forward, self.wait_seconds)
        except (ApprovalPending, ReturnedForRevision) as pending:
            return build_pending(pending.proposal), False
        except CALL_ERRORS as error:
            return explain_error(error)
        return build_result(result), True

    async def perform_call(
        self,
        call: NamedCall,
        tool: Tool,
        forward: Forward,
        wait_seconds: float | None,
    ) -> ToolResult:
        """Propose the call, wait, and perform what was approved. Raises the ToolError
        of what became of it, ToolFailed, and what `forward` raises."""
        function = ForwardedCall(call.tool, forward, self.call_seconds)
        definition = self._define_tool(tool, function)
        details: Details = {"rationale": self.rationale} if self.rationale else {}
        asked = ToolCall(
            call.thread, call.call_id, call.arguments, details, wait_seconds
        )
        return await self._run_flow(definition.run_call(asked), function)

    async def follow_proposal(
        self, proposal: Proposal, call: NamedCall | None, forward: Forward
    ) -> ToolResult:
        """Wait for the end of a proposal, and perform what was approved. Raises as
        `perform_call`; RefusedTool for a proposal of another tool."""
        tool = self.names.to_server(proposal.tool)
        function = ForwardedCall(tool, forward, self.call_seconds)
        definition = self._define_tool({"name": tool}, function)
        args = call.arguments if call else None
        flow = definition.follow_proposal(proposal, args, None)
        return await self._run_flow(flow, function)

    def _define_tool(self, tool: Tool, function: ForwardedCall) -> RemoteTool:
        """The server's tool under its name at the gate. Raises RefusedTool."""
        name = self.names.to_policy(function.tool)
        return RemoteTool(name, tool, self.gate, function)

    async def _run_flow(
        self, flow: Flow[ToolResult], function: ForwardedCall
    ) -> ToolResult:
        """The result of the flow. A performed call whose report was refused has its
        result all the same."""
        with function.scope:
            try:
                return await self.gate.run(flow, function)
            except CountersealError:
                if function.performed is None:
                    raise
                return function.performed
        raise AssertionError  # nothing cancels this scope alone


def explain_error(error: Exception) -> tuple[Json, bool]:
    """The result for an error of CALL_ERRORS, and whether the call has ended: after an
    unknown outcome, or one of which the gate could not be asked, an equal call is this
    call and not another one."""
    if isinstance(error, ReadFailed):
        return error.result, True
    if isinstance(error, ToolFailed):
        return build_failure(error), False
    if isinstance(error, ToolError):
        return build_error(error), error.proposal.status != "unknown"
    if isinstance(error, CountersealError):
        return build_error(error), False
    if isinstance(error, NothingHappened):
        return build_text(f"{error} Nothing has happened.", is_error=True), True
    if isinstance(error, ValueError):  # NaN, or half a character
        return build_text(f"The arguments are no JSON: {error}", is_error=True), False
    text = (
        f"The server gave no result: {str(error) or type(error).__name__}. Nobody can"
        " say whether the call had an effect. Do not call it again; a person finds out"
        " what happened."
    )
    return build_text(text, is_error=True), False


def build_call_meta(meta: Mapping[str, Any], claim: Claim) -> Json:
    """The `_meta` of a forwarded call: the client's, with the key and the grant of this
    call."""
    return {
        **meta,
        IDEMPOTENCY_META: claim.idempotency_key,
        GRANT_META: claim.grant,
    }
