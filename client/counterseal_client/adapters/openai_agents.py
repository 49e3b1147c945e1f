"""OpenAI Agents SDK: tools whose calls interrupt the run until people have decided.

    refund = build_tool(process_refund)            # for Agent(tools=[...])
    result = await Runner.run(agent, text, context={"thread_id": "order_78291"})
    save(result.to_state().to_json())              # the process may end
    state = await RunState.from_json(agent, saved)
    result = await resume_run(agent, state, gate)  # later, in any process

The approval in a RunState only wakes the tool: it asks the gate for its own proposal
and redeems the grant right before the effect. A RunState is not authenticated by the
SDK; a changed one performs nothing that people did not approve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from agents.tool_context import ToolContext  # type: ignore[import-not-found]

# In this repository, type checkers take `agents` for a package of the product.
from agents import (  # type: ignore[attr-defined]
    Agent,
    FunctionTool,
    RunContextWrapper,
    Runner,
    RunResult,
    RunState,
    ToolApprovalItem,
)
from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.models import Proposal
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import (
    NamedCall,
    check_call_id,
    check_thread,
    format_result,
    parse_arguments,
)
from .coroutines import AnyTool, perform_call, propose_call
from .decisions import is_ready, look_up, read_refusal
from .flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="openai-agents",
    minimum="0.24.0",
    # The SDK has no edit, but an edited call reaches the tool with its grant.
    supports_edit=True,
)
FLAGS.check_version("the adapter was not tested with a release before it.")

PausingAgent: TypeAlias = Agent[Any]
ReadThread = Callable[[Any], str]
"""Takes the context of the run and returns the thread of the gate."""
DescribeCall = Callable[[Any, dict[str, Any], str], Details]
"""Takes the context of the run, the arguments and the id of a call."""


def read_thread(context: Any) -> str:
    """The `thread_id` of the context of the run, a mapping or an object."""
    if isinstance(context, Mapping):
        return str(context.get("thread_id", ""))
    return str(getattr(context, "thread_id", ""))


def describe_call(context: Any, arguments: dict[str, Any], call_id: str) -> Details:
    """The details of a proposal by default: none. The SDK shows a tool no words of the
    model."""
    return {}


@dataclass
class GateFunctionTool(FunctionTool):
    """A tool of the SDK that remembers how its calls are named at the gate."""

    gated: AnyTool | None = None
    thread: ReadThread = read_thread
    describe: DescribeCall = describe_call

    def name_call(
        self, context: Any, arguments: dict[str, Any], call_id: str
    ) -> NamedCall:
        """The names of a call. Raises ValueError for one that the gate could not
        name."""
        thread = check_thread(self.thread(context), "thread_id of the context")
        known = check_call_id(call_id, [call_id])
        return NamedCall(thread, known, self.describe(context, arguments, call_id))

    async def must_wait(
        self, context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        """Propose the call. Whether the run must wait for it: a call that cannot be
        proposed, or that needs no person, goes on to the tool at once."""
        assert self.gated is not None
        call = self.name_call(context.context, arguments, call_id)
        try:
            return not is_ready(await propose_call(self.gated, arguments, call))
        except InvalidArguments:
            return False

    async def perform(self, context: ToolContext[Any], text: str) -> str:
        """The result, or why there is none, for the model. Raises ApprovalPending when
        somebody approved a call in the SDK that people still decide on: the run fails,
        and the stored one still waits."""
        assert self.gated is not None
        try:
            arguments = parse_arguments(self.name, text)
            call = self.name_call(context.context, arguments, context.tool_call_id)
            return format_result(await perform_call(self.gated, arguments, call))
        except ApprovalPending:
            raise
        except (ToolError, InvalidArguments) as error:
            return str(error)


def build_tool(
    tool: AnyTool,
    *,
    thread: ReadThread = read_thread,
    describe: DescribeCall = describe_call,
) -> FunctionTool:
    """Build a tool of the SDK from a tool of Gate or AsyncGate.

    `thread` reads the thread of the gate from the context of the run; the call id is
    the model's. `describe` must return the same details whenever it is called again.
    The arguments are checked by the tool itself, so the SDK's own strict mode is off.
    """

    async def must_wait(
        context: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str
    ) -> bool:
        return await built.must_wait(context, arguments, call_id)

    async def perform(context: ToolContext[Any], text: str) -> str:
        return await built.perform(context, text)

    built = GateFunctionTool(
        name=tool.name,
        description=tool.description or tool.name,
        params_json_schema=tool.schema,
        on_invoke_tool=perform,
        strict_json_schema=False,
        needs_approval=must_wait,
        gated=tool,
        thread=thread,
        describe=describe,
    )
    return built


async def resume_run(
    agent: PausingAgent,
    state: RunState[Any, Any],
    gate: Gate,
    *,
    wait_seconds: float = 0,
) -> RunResult | None:
    """Resume the run where people have decided, and return the SDK's result, whose
    state replaces the stored one. None when nobody has decided yet.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call, until one can go on. Interruptions that are not
    the gate's are left as they are.
    """
    answered = False
    for item in state.get_interruptions():
        proposal = await find_proposal(item, state)
        if proposal is None:
            continue
        if wait_seconds and not answered and not is_ready(proposal):
            proposal = await asyncio.to_thread(look_up, proposal.id, gate, wait_seconds)
        if not is_ready(proposal):
            continue
        answered = True
        refusal = read_refusal(proposal)
        if refusal:
            state.reject(item, rejection_message=refusal)
        else:
            state.approve(item)
    return await Runner.run(agent, state) if answered else None


async def find_proposal(
    item: ToolApprovalItem, state: RunState[Any, Any]
) -> Proposal | None:
    """The proposal of an interrupted call: its state, and the page where people decide.
    None for a call that is not the gate's. The SDK keeps nothing beside a call, so the
    call is proposed again, which leads to the same proposal."""
    tool = find_tool(item)
    if tool is None:
        return None
    assert tool.gated is not None
    # RunState has no public name for the context of its run.
    context = state._context.context if state._context else None
    arguments = parse_arguments(tool.name, item.arguments or "")
    call = tool.name_call(context, arguments, item.call_id or "")
    return await propose_call(tool.gated, arguments, call)


def find_tool(item: ToolApprovalItem) -> GateFunctionTool | None:
    """The gate's tool that an interruption is about."""
    for tool in item.agent.tools:
        if isinstance(tool, GateFunctionTool) and tool.name == item.name:
            return tool
    return None
