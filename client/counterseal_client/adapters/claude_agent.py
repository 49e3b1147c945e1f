"""Claude Agent SDK: tools in the program itself, whose calls end the run until people
have decided.

    server = GateServer([process_refund], thread="order_78291")
    options = server.add_to(ClaudeAgentOptions(...))
    async for message in query(prompt="...", options=options):
        ...
    save(server.paused.to_dict())                  # the process may end
    server = GateServer([process_refund], thread="order_78291")
    paused = PausedSession.from_dict(load())
    async for message in resume_session(paused, server, options, gate):
        ...                                        # later, in any process

A hook proposes each call and has Claude Code defer it. The tool itself asks the gate
for its own proposal and redeems the grant right before the effect, whatever a hook, a
rule or a mode allowed. Claude Code's own tools are not the gate's here; `counterseal
hook claude-code` gates those.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    McpSdkServerConfig,
    ResultMessage,
    query,
)
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool

from counterseal_client.errors import CountersealError, InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ToolError

from .calls import (
    TASK_SCHEMA,
    DuplicateCallId,
    NamedCall,
    check_call_id,
    check_thread,
    format_result,
)
from .coroutines import AnyTool, perform_call, propose_call, withdraw_proposal
from .decisions import collect_decisions, describe_waiting, is_ready
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="claude-agent-sdk", minimum="0.2.189", partial_ok=False)
FLAGS.check_version("a hook that fails would let its call through.")

CALL_ID_META = "claudecode/toolUseId"
"""Where Claude Code puts the id of a call for an MCP server."""
START_SECONDS = 60.0
"""How long a resumed session may take until it says something."""
ONE_AT_A_TIME = (
    "Another call of this message waits for people, and only one call can wait. It was"
    " not proposed. Make this call again when you have the result of the other."
)
NO_SUBAGENT = (
    "A sub-agent cannot wait for people, so the call was not proposed. Return what you"
    " have, and let the main agent make the call."
)

DescribeCall = Callable[[str, dict[str, Any], str], Details]
"""Takes the name of the tool, the arguments and the id of a call."""


class NothingDeferred(RuntimeError):
    """The session has no deferred call to go on with: another process resumed it."""

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"The session {session_id} has no call that waits. Another process may have"
            " resumed it; continue it with a prompt."
        )


def describe_call(tool: str, arguments: dict[str, Any], call_id: str) -> Details:
    """The details of a proposal by default: none. Claude Code shows a hook no words of
    the model."""
    return {}


@dataclass(slots=True)
class PausedSession:
    """A session whose run has ended because a call waits. `waiting` names it, as
    `describe_waiting` does; `nested` has the paused session of the agent behind it."""

    session_id: str
    call_id: str
    waiting: list[dict[str, Any]] = field(default_factory=list)
    nested: PausedSession | None = None

    def to_dict(self) -> dict[str, Any]:
        """The values that `json.dumps` writes, for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PausedSession:
        """What `to_dict` returned."""
        nested = data["nested"]
        return cls(
            data["session_id"],
            data["call_id"],
            data["waiting"],
            cls.from_dict(nested) if nested else None,
        )


@dataclass(frozen=True, slots=True)
class NestedAgent:
    """An agent behind a tool with one argument, `task`: a session of its own."""

    server: GateServer
    options: ClaudeAgentOptions
    description: str = "Hand a task to another agent."


class GateServer:
    """The tools of the gate in one session: an MCP server inside the program, and the
    hook that pauses its calls.

    The thread of the gate is `thread`, the call id the model's. `agents` are nested
    agents by the name of their tool. `describe` must return the same details whenever
    it is called again. Build a new one for each run: `paused` is how that run ended.
    """

    def __init__(
        self,
        tools: Sequence[AnyTool],
        *,
        thread: str,
        agents: Mapping[str, NestedAgent] | None = None,
        name: str = "counterseal",
        describe: DescribeCall = describe_call,
    ) -> None:
        self.thread = check_thread(thread, "thread")
        self.paused: PausedSession | None = None
        self._tools = {tool.name: tool for tool in tools}
        self._agents = dict(agents or {})
        self._name = name
        self._describe = describe
        self._resumed: PausedSession | None = None
        self._limit: asyncio.Timeout | None = None
        self._outputs: dict[str, str] = {}
        self._deciding = asyncio.Lock()

    def add_to(self, options: ClaudeAgentOptions) -> ClaudeAgentOptions:
        """The options with the server and its hook."""
        server = Server(
            self._name,
            version="1.0.0",
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        config = McpSdkServerConfig(type="sdk", name=self._name, instance=server)
        hooks = dict(options.hooks or {})
        matcher = HookMatcher(
            matcher=f"{self._prefix}.*", hooks=[self._decide], on_failure="block"
        )
        hooks["PreToolUse"] = [*hooks.get("PreToolUse", []), matcher]
        servers = {**options.mcp_servers, self._name: config}
        return replace(options, mcp_servers=servers, hooks=hooks)

    @property
    def _prefix(self) -> str:
        return f"mcp__{self._name}__"

    def resume_from(self, paused: PausedSession, limit: asyncio.Timeout) -> None:
        """Let the next run go on from there. `limit` ends when it asks about a call."""
        self.paused, self._resumed, self._limit = None, paused, limit

    async def _list_tools(self, *_: Any) -> ListToolsResult:
        found = [
            build_tool(tool.name, tool.description, tool.schema)
            for tool in self._tools.values()
        ]
        for name, agent in self._agents.items():
            found.append(build_tool(name, agent.description, TASK_SCHEMA))
        return ListToolsResult(tools=found)

    async def _decide(self, call: Any, call_id: str | None, _: Any) -> dict[str, Any]:
        """The hook: what becomes of a call before it runs."""
        async with self._deciding:  # calls of one message come at once
            if self._limit is not None:
                self._limit.reschedule(None)
            name = call["tool_name"].removeprefix(self._prefix)
            arguments = dict(call["tool_input"])
            if call.get("agent_id"):
                return answer_hook("deny", NO_SUBAGENT)
            known = check_call_id(call_id, [call_id])
            if self.paused is not None:
                return await self._refuse_sibling(self.paused, known)
            session_id = call["session_id"]
            if name in self._agents:
                return await self._run_agent(name, arguments, session_id, known)
            return await self._propose(name, arguments, session_id, known)

    async def _refuse_sibling(
        self, paused: PausedSession, call_id: str
    ) -> dict[str, Any]:
        """A call beside one that waits. One with its id makes both of them void."""
        if call_id != paused.call_id:
            return answer_hook("deny", ONE_AT_A_TIME)
        for waiting in paused.waiting:
            await withdraw_proposal(self._tools[waiting["tool"]], waiting["proposal"])
        return answer_hook("deny", str(DuplicateCallId(call_id)))

    async def _propose(
        self, name: str, arguments: dict[str, Any], session_id: str, call_id: str
    ) -> dict[str, Any]:
        tool = self._tools[name]
        try:
            call = self._name_call(name, arguments, call_id)
            proposal = await propose_call(tool, arguments, call)
        except CountersealError as error:
            return answer_hook("deny", str(error))
        if is_ready(proposal):
            return answer_hook("allow")  # the tool performs it, or says why not
        waiting = [describe_waiting(proposal, call_id)]
        self.paused = PausedSession(session_id, call_id, waiting)
        return answer_hook("defer")

    async def _run_agent(
        self, name: str, arguments: dict[str, Any], session_id: str, call_id: str
    ) -> dict[str, Any]:
        """Run the nested agent, or go on where it paused."""
        agent, before = self._agents[name], self._resumed
        nested = before.nested if before and before.call_id == call_id else None
        if nested is None:
            inner_id = str(uuid.uuid5(uuid.UUID(session_id), call_id))
            options = replace(agent.options, session_id=inner_id, resume=None)
            task = str(arguments.get("task", ""))
            messages = query(prompt=task, options=agent.server.add_to(options))
        else:
            messages = continue_session(nested, agent.server, agent.options)
        async for message in messages:
            if isinstance(message, ResultMessage):
                self._outputs[call_id] = message.result or ""
        inner = agent.server.paused
        if inner is None:
            return answer_hook("allow")
        self.paused = PausedSession(session_id, call_id, inner.waiting, inner)
        return answer_hook("defer")

    def _name_call(
        self, tool: str, arguments: dict[str, Any], call_id: str
    ) -> NamedCall:
        details = self._describe(tool, arguments, call_id)
        return NamedCall(self.thread, call_id, details)

    async def _call_tool(self, _: Any, params: Any) -> CallToolResult:
        """The tool: the result, or why there is none, for the model."""
        call_id = str((params.meta or {}).get(CALL_ID_META, ""))
        arguments = dict(params.arguments or {})
        if params.name in self._agents:
            missing = f"{params.name} has not finished."
            return build_result(self._outputs.get(call_id, missing))
        try:
            check_call_id(call_id, [call_id])
            call = self._name_call(params.name, arguments, call_id)
            found = await perform_call(self._tools[params.name], arguments, call)
        except (ToolError, InvalidArguments) as error:
            return build_result(str(error), error=True)
        return build_result(format_result(found))


def build_tool(name: str, description: str, schema: dict[str, Any]) -> Tool:
    """What Claude Code reads of a tool."""
    return Tool.model_validate(
        {"name": name, "description": description or name, "inputSchema": schema}
    )


def build_result(text: str, *, error: bool = False) -> CallToolResult:
    """What the model reads of a call."""
    content = [TextContent(type="text", text=text)]
    return CallToolResult.model_validate(
        {"content": [one.model_dump() for one in content], "isError": error}
    )


def answer_hook(decision: str, reason: str = "") -> dict[str, Any]:
    """The answer of a hook before a call."""
    found = {"hookEventName": "PreToolUse", "permissionDecision": decision}
    if reason:
        found["permissionDecisionReason"] = reason
    return {"hookSpecificOutput": found}


async def resume_session(
    paused: PausedSession,
    server: GateServer,
    options: ClaudeAgentOptions,
    gate: Gate,
    *,
    wait_seconds: float = 0,
) -> AsyncIterator[Any]:
    """Resume the session when people have decided, and yield its messages; nothing
    while nobody has decided yet. `server.paused` is how the run ended; None when it
    ended by itself.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds`. `options` are those of the first run, without the server.
    Raises NothingDeferred for a session that has gone on already.
    """
    waiting = {str(number): one for number, one in enumerate(paused.waiting)}
    if not await asyncio.to_thread(collect_decisions, waiting, gate, wait_seconds):
        server.paused = paused
        return
    async for message in continue_session(paused, server, options):
        yield message


async def continue_session(
    paused: PausedSession, server: GateServer, options: ClaudeAgentOptions
) -> AsyncIterator[Any]:
    """Let Claude Code ask about the deferred call again, and yield its messages."""
    over = asyncio.Event()
    kept = replace(options, resume=paused.session_id, session_id=None)
    run = query(prompt=keep_open(over), options=server.add_to(kept))
    try:
        async with asyncio.timeout(START_SECONDS) as limit:
            server.resume_from(paused, limit)
            async for message in run:
                limit.reschedule(None)
                if isinstance(message, ResultMessage):
                    over.set()
                yield message
    except TimeoutError:
        raise NothingDeferred(paused.session_id) from None


async def keep_open(over: asyncio.Event) -> AsyncIterator[dict[str, Any]]:
    """A prompt without a message, as long as the session runs: Claude Code reaches the
    server and the hook by the same stream."""
    await over.wait()
    messages: tuple[dict[str, Any], ...] = ()
    for message in messages:
        yield message
