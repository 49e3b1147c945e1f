"""Microsoft Agent Framework: tools whose calls pause the run until people have decided.

    tools = [build_tool(process_refund)]           # functions behind the gate
    agent = Agent(client, tools=tools)
    session = agent.create_session(session_id="order_78291")
    response = await agent.run(..., session=session)
    await propose_calls(response, session, tools)
    save(session.to_dict())                        # the process may end
    session = AgentSession.from_dict(load())
    await resume_run(agent, session, tools, gate)  # later, in any process

An approval of the framework only wakes the tool: it asks the gate for its own proposal
and redeems the grant right before the effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    Content,
    FunctionInvocationContext,
    FunctionTool,
    Message,
)

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.models import Proposal
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ToolError

from .calls import (
    TASK_SCHEMA,
    NamedCall,
    check_call_id,
    check_call_ids,
    check_thread,
    format_result,
)
from .coroutines import AnyTool, perform_call, propose_call
from .decisions import describe_waiting, is_ready, look_up
from .flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="agent-framework-core",
    minimum="1.23.0",
    # The framework has no edit, but an edited call reaches the tool with its grant.
    supports_edit=True,
    partial_ok=False,
)
FLAGS.check_version("an approval that it had not asked for could run a call.")

STATE = "counterseal"
"""Where the state of a session has what waits: `requests`, as the framework shows them,
and `nested`, the runs of nested agents by the id of the call that runs each."""

DescribeCall = Callable[[str, dict[str, Any], str], Details]
"""Takes the name of the tool, the arguments and the id of a call."""


class UnansweredRequests(ValueError):
    """Requests of other tools wait too and have no answer, so the run was not
    resumed."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"Requests of {', '.join(names)} wait too. Pass their answers as `others`:"
            " all answers of a run are sent at once."
        )


def describe_call(tool: str, arguments: dict[str, Any], call_id: str) -> Details:
    """The details of a proposal by default: none. The framework shows a tool no words
    of the model."""
    return {}


async def refuse_call(context: FunctionInvocationContext, **_: Any) -> str:
    """Stands for the function of a tool: the tools here perform calls themselves, with
    the call's id, which a function does not get."""
    raise NotImplementedError(context.function.name)


class GateTool(FunctionTool):
    """A tool of the framework whose calls are those of a gated function."""

    def __init__(self, gated: AnyTool, describe: DescribeCall) -> None:
        super().__init__(
            name=gated.name,
            description=gated.description or gated.name,
            func=refuse_call,
            input_model=gated.schema,
            approval_mode="always_require",
        )
        self.gated = gated
        self.describe = describe

    def name_call(
        self, session: AgentSession | None, arguments: dict[str, Any], call_id: str
    ) -> NamedCall:
        """The names of a call. Raises ValueError for one that the gate could not
        name."""
        name = session.session_id if session else ""
        thread = check_thread(name, "the session's id")
        known = check_call_id(call_id, [call_id])
        return NamedCall(thread, known, self.describe(self.name, arguments, known))

    async def propose(self, session: AgentSession, call: Content) -> Proposal | None:
        """The proposal of a call; None for arguments that do not fit the function,
        which the tool itself tells the model."""
        arguments = dict(call.parse_arguments() or {})
        named = self.name_call(session, arguments, call.call_id or "")
        try:
            return await propose_call(self.gated, arguments, named)
        except InvalidArguments:
            return None

    async def invoke(
        self,
        *,
        arguments: Any = None,
        context: FunctionInvocationContext | None = None,
        tool_call_id: str | None = None,
        **_: Any,
    ) -> Any:
        """The result, or why there is none, for the model."""
        session = context.session if context else None
        given = dict(arguments or {})
        call = self.name_call(session, given, tool_call_id or "")
        try:
            text = format_result(await perform_call(self.gated, given, call))
        except (ToolError, InvalidArguments) as error:
            text = str(error)
        return [Content.from_text(text)]


class AgentTool(FunctionTool):
    """A tool behind which another agent sits, with tools of the gate. The framework's
    `as_tool` does not show the requests of the inner agent."""

    def __init__(
        self, agent: Agent, tools: Sequence[FunctionTool], name: str, description: str
    ) -> None:
        super().__init__(
            name=name,
            description=description,
            func=refuse_call,
            input_model=TASK_SCHEMA,
            approval_mode="always_require",
        )
        self.agent = agent
        self.tools = tools

    async def advance(
        self,
        session: AgentSession,
        call: Content,
        gate: Gate | None = None,
        wait_seconds: float = 0,
    ) -> list[dict[str, Any]]:
        """Run the inner agent, or resume it with a gate, keep its session in the outer
        one, and return what waits in it. Its last words are the result of the call."""
        runs = session.state.setdefault(STATE, {}).setdefault("nested", {})
        kept = runs.setdefault(call.call_id, {})
        if "output" in kept:
            return []
        if "session" in kept:
            inner = AgentSession.from_dict(kept["session"])
        else:
            inner = AgentSession(session_id=session.session_id)
        response = None
        if list_requests(inner):
            if gate is not None:
                response = await resume_run(
                    self.agent, inner, self.tools, gate, wait_seconds=wait_seconds
                )
        else:
            task = str((call.parse_arguments() or {}).get("task", ""))
            response = await self.agent.run(task, session=inner)
            await propose_calls(response, inner, self.tools)
        kept["session"] = inner.to_dict()
        if response is not None and not list_requests(inner):
            kept["output"] = response.text
        return list_waiting(inner)

    async def invoke(
        self,
        *,
        context: FunctionInvocationContext | None = None,
        tool_call_id: str | None = None,
        **_: Any,
    ) -> Any:
        """The last words of the inner agent."""
        state = context.session.state if context and context.session else {}
        run = state.get(STATE, {}).get("nested", {}).get(tool_call_id, {})
        return [Content.from_text(run.get("output", f"{self.name} has not finished."))]


def build_tool(tool: AnyTool, *, describe: DescribeCall = describe_call) -> GateTool:
    """Build a tool of the framework from a tool of Gate or AsyncGate.

    The thread of the gate is the session's id, the call id the model's. `describe` must
    return the same details whenever it is called again.
    """
    return GateTool(tool, describe)


def build_agent_tool(
    agent: Agent, tools: Sequence[FunctionTool], *, name: str, description: str
) -> AgentTool:
    """Build a tool that hands a `task` to another agent. `tools` are that agent's. Its
    calls of the gate wait in the session of the outer agent."""
    return AgentTool(agent, tools, name, description)


async def propose_calls(
    response: AgentResponse, session: AgentSession, tools: Sequence[FunctionTool]
) -> list[dict[str, Any]]:
    """Propose the calls for which the run has paused, keep them in the state of the
    session, and return what waits for people. Raises DuplicateCallId for an id that
    stands twice: then none of them was proposed.

    Store the session after it. If the process dies before, the run has to be started
    again.
    """
    kept = session.state.setdefault(STATE, {})
    kept["requests"] = [one.to_dict() for one in response.user_input_requests]
    kept["waiting"] = []
    waiting: list[dict[str, Any]] = []
    for call, tool in pair_calls(session, tools):
        if isinstance(tool, AgentTool):
            waiting += await tool.advance(session, call)
        elif isinstance(tool, GateTool):
            proposal = await tool.propose(session, call)
            if proposal is not None and not is_ready(proposal):
                waiting.append(describe_waiting(proposal, call.call_id or ""))
    kept["waiting"] = waiting
    return waiting


def list_requests(session: AgentSession) -> list[Content]:
    """The requests for which the stored run has paused."""
    kept = session.state.get(STATE, {}).get("requests", [])
    return [Content.from_dict(one) for one in kept]


def list_waiting(session: AgentSession) -> list[dict[str, Any]]:
    """What waited for people when the run paused, those of nested agents too."""
    return list(session.state.get(STATE, {}).get("waiting", []))


def pair_calls(
    session: AgentSession, tools: Sequence[FunctionTool]
) -> Iterator[tuple[Content, FunctionTool]]:
    """The calls that wait for tools of the gate, with the tools."""
    by_name = {tool.name: tool for tool in tools}
    calls = [one.function_call for one in list_requests(session) if one.function_call]
    check_call_ids([call.call_id for call in calls])
    for call in calls:
        if isinstance(by_name.get(call.name or ""), GateTool | AgentTool):
            yield call, by_name[call.name or ""]


async def resume_run(
    agent: Agent,
    session: AgentSession,
    tools: Sequence[FunctionTool],
    gate: Gate,
    *,
    wait_seconds: float = 0,
    others: Sequence[Content] = (),
) -> AgentResponse | None:
    """Resume the run when people have decided all that waits in it, and return the
    framework's response. None when something is still undecided, or nothing waits.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call. Store the session after it, whatever it returns.
    `others` are the answers to requests of other tools; without them, it raises
    UnansweredRequests.
    """
    requests = list_requests(session)
    pairs = list(pair_calls(session, tools))
    for call, tool in pairs:
        if not await is_decided(session, call, tool, gate, wait_seconds):
            return None
    own = {call.call_id for call, _ in pairs}
    answered = {one.id for one in others}
    open_requests = [one for one in requests if read_call_id(one) not in own]
    if missing := [one for one in open_requests if one.id not in answered]:
        raise UnansweredRequests([read_name(one) for one in missing])
    # An approval only wakes the tool, which tells the model of a rejection.
    answers = [
        one.to_function_approval_response(approved=True)
        for one in requests
        if read_call_id(one) in own
    ]
    if not answers:
        return None
    message = Message("user", [*answers, *others])
    response: AgentResponse = await agent.run(message, session=session)
    await propose_calls(response, session, tools)
    return response


async def is_decided(
    session: AgentSession,
    call: Content,
    tool: FunctionTool,
    gate: Gate,
    wait_seconds: float,
) -> bool:
    """Whether a call can go on. It waits for at most `wait_seconds`."""
    if isinstance(tool, AgentTool):
        await tool.advance(session, call, gate, wait_seconds)
        return "output" in session.state[STATE]["nested"][call.call_id]
    assert isinstance(tool, GateTool)
    proposal = await tool.propose(session, call)
    if proposal is None or is_ready(proposal):
        return True
    found = await asyncio.to_thread(look_up, proposal.id, gate, wait_seconds)
    return is_ready(found)


def read_call_id(request: Content) -> str:
    """The id of the call that a request is about."""
    return str(request.function_call.call_id if request.function_call else "")


def read_name(request: Content) -> str:
    """The name of the tool that a request is about."""
    return str(request.function_call.name if request.function_call else request.type)
