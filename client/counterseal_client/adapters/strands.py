"""Strands Agents: tools whose calls interrupt the agent until people have decided.

    agent = Agent(
        model, tools=[build_tool(process_refund, thread="order_78291")],
        session_manager=...,
    )
    agent("...")                                   # proposes; the process may end
    resume_agent(agent, gate)                      # later, in any process

The response to an interrupt only wakes the tool: it asks the gate for its own proposal,
redeems the grant right before the effect, and interrupts again while nobody has
decided.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from itertools import count
from typing import Any

from strands import Agent
from strands.interrupt import Interrupt
from strands.types._events import ToolResultEvent
from strands.types.tools import AgentTool, ToolContext

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import NamedCall, check_call_id, check_thread, describe_words, format_result
from .coroutines import AnyTool, perform_call
from .decisions import collect_decisions, describe_waiting, names_proposal
from .flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="strands-agents",
    minimum="1.62.0",
    # Strands has no edit, but an edited call reaches the tool with its grant.
    supports_edit=True,
)
FLAGS.check_version("the adapter was not tested with a release before it.")

DescribeCall = Callable[[Mapping[str, Any], str], Details]
"""Takes the model's message and the id of one of its calls."""


def describe_call(message: Mapping[str, Any], call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    words = [block["text"] for block in message.get("content", []) if "text" in block]
    return describe_words(" ".join(words))


def build_tool(
    tool: AnyTool, *, thread: str, describe: DescribeCall = describe_call
) -> GateTool:
    """Build a tool of Strands from a tool of Gate or AsyncGate.

    `thread` is that of the gate, the call id the model's. `describe` must return the
    same details whenever the tool is called again.
    """
    return GateTool(tool, check_thread(thread, "thread"), describe)


class GateTool(AgentTool):
    """A tool of Strands whose calls are those of a gated function."""

    def __init__(self, gated: AnyTool, thread: str, describe: DescribeCall) -> None:
        super().__init__()
        self._gated = gated
        self._thread = thread
        self._describe = describe

    @property
    def tool_name(self) -> str:
        return self._gated.name

    @property
    def tool_spec(self) -> Any:
        return {
            "name": self._gated.name,
            "description": self._gated.description or self._gated.name,
            "inputSchema": {"json": self._gated.schema},
        }

    @property
    def tool_type(self) -> str:
        return "function"

    async def stream(
        self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Perform the call if it is approved, interrupt the agent while it waits."""
        context = kwargs.get("_tool_context") or build_context(
            tool_use, invocation_state
        )
        call = self._name_call(context)
        arguments = dict(tool_use["input"])
        for number in count():
            try:
                found = await perform_call(self._gated, arguments, call)
            except ApprovalPending as pending:
                # Interrupts the agent, or returns if this interrupt was answered.
                facts = describe_waiting(pending.proposal, call.call_id)
                context.interrupt(f"counterseal-{number}", reason=facts)
            except (ToolError, InvalidArguments) as error:
                yield build_event(call.call_id, str(error), "error")
                return
            else:
                yield build_event(call.call_id, format_result(found), "success")
                return

    def _name_call(self, context: ToolContext) -> NamedCall:
        """The names of the call. Raises DuplicateCallId for an id that stands twice in
        the message, ValueError for a call without one."""
        call_id = context.tool_use["toolUseId"]
        message = find_calling_message(context.agent.messages, call_id)
        check_call_id(call_id, list_call_ids(message))
        details = self._describe(message, call_id)
        return NamedCall(self._thread, call_id, details)


def build_context(tool_use: Any, invocation_state: dict[str, Any]) -> ToolContext:
    """The context of a call. Strands builds it for its own kind of functions alone, by
    the same way."""
    return ToolContext(
        tool_use=tool_use,
        agent=invocation_state["agent"],
        invocation_state=invocation_state,
    )


def build_event(call_id: str, text: str, status: str) -> ToolResultEvent:
    """What the model reads of a call."""
    return ToolResultEvent(
        {"toolUseId": call_id, "status": status, "content": [{"text": text}]}
    )


def list_call_ids(message: Mapping[str, Any]) -> list[str]:
    blocks = message.get("content", [])
    return [block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block]


def find_calling_message(messages: Any, call_id: str) -> Mapping[str, Any]:
    """The newest message that has this call; an empty one if the history was cut."""
    for message in reversed(messages):
        if call_id in list_call_ids(message):
            found: Mapping[str, Any] = message
            return found
    return {}


def list_interrupts(agent: Agent) -> dict[str, Interrupt]:
    """The interrupts of the gate that wait in an agent, a restored one too, by id."""
    # A restored agent has no public name for them.
    state = agent._interrupt_state
    if not state.activated:
        return {}
    return {
        key: found
        for key, found in state.interrupts.items()
        if names_proposal(found.reason) and found.response is None
    }


def resume_agent(agent: Agent, gate: Gate, *, wait_seconds: float = 0) -> Any:
    """Answer what waits if something is decided, and return what the agent returns.
    None when nobody has decided yet. A call that is not decided interrupts again.

    Any process may call this, at any time and as often as it likes, with an agent that
    its session manager has restored. It waits for at most `wait_seconds` for each call,
    until one can go on.
    """
    answers = answer_interrupts(agent, gate, wait_seconds)
    return agent(answers) if answers else None


def answer_interrupts(
    agent: Agent, gate: Gate, wait_seconds: float = 0
) -> list[dict[str, Any]]:
    """The answers that wake the tools of the gate; none while nobody has decided. An
    async program passes them to `agent.invoke_async`."""
    waiting = list_interrupts(agent)
    reasons = {key: found.reason for key, found in waiting.items()}
    if not collect_decisions(reasons, gate, wait_seconds):
        return []
    return [
        {"interruptResponse": {"interruptId": key, "response": True}} for key in waiting
    ]
