"""CrewAI: flows that pause, with their state stored, until people have decided.

    @human_feedback(message="Waits for the gate.", provider=GateProvider())
    def ask_people(self):                          # in a Flow
        return propose_calls(tools, self.state.messages, thread=self.state.id)

    @router(ask_people)
    def act(self):
        self.state.messages += perform_calls(
            tools, self.state.messages, thread=self.state.id
        )

    flow.kickoff(inputs={"id": "order_78291"})     # proposes, and returns
    resume_flow(ShippingFlow, "order_78291", store, gate)   # later, in any process

The feedback that resumes a flow only wakes it, and no model reads it: the tool asks the
gate for its own proposal and redeems the grant right before the effect. A tool inside
a Crew cannot pause: CrewAI hands every exception of a tool to the model as a result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crewai.flow.async_feedback import HumanFeedbackPending
from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.flow import Flow
from crewai.flow.persistence import FlowPersistence
from crewai.utilities.agent_utils import extract_tool_call_info

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import (
    NamedCall,
    check_call_id,
    check_thread,
    format_result,
    parse_arguments,
)
from .decisions import collect_decisions, describe_waiting, is_ready
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="crewai", minimum="1.15.30", binds_request=False)
FLAGS.check_version("the adapter was not tested with a release before it.")

WAKE = "Ask the gate."
Message = dict[str, Any]
"""A message as CrewAI's models take it: role, content, and calls or the id of one."""
Tools = Mapping[str, GatedTool[..., Any]]
DescribeCall = Callable[[Mapping[str, Any]], Details]
"""Takes one of a model's calls, as its message has it."""


def describe_call(call: Mapping[str, Any]) -> Details:
    """The details of a proposal by default: none. CrewAI returns the calls of a model
    without its words."""
    return {}


class GateProvider:
    """The provider of a `@human_feedback` step that returns what `propose_calls`
    returned. The flow pauses while any of these calls waits."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Flow[Any]) -> str:
        """Pause the flow. Raises ValueError for a step with `emit`, whose outcome a
        model would choose."""
        if context.emit:
            raise ValueError(
                f"{context.method_name} has emit={context.emit!r}: a model would turn"
                " the gate's decision into one of them. Leave `emit` out, and let the"
                " next step perform the calls."
            )
        if not context.method_output:
            return WAKE
        raise HumanFeedbackPending(context, {"waiting": context.method_output})


def read_answer(answer: Any) -> Message:
    """A model's answer, of `LLM.call` with tools, as a message to keep in the state of
    the flow. Raises ValueError for a call without an id, DuplicateCallId for two calls
    with one."""
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    found = [info for info in map(extract_tool_call_info, answer) if info]
    ids = [call_id for call_id, _, _ in found]
    calls = [
        {
            "id": check_call_id(call_id, ids),
            "type": "function",
            "function": {
                "name": name,
                "arguments": given if isinstance(given, str) else json.dumps(given),
            },
        }
        for call_id, name, given in found
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def list_unanswered(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The calls of the newest message with calls that have no result yet."""
    answered = {message.get("tool_call_id") for message in messages}
    for message in reversed(messages):
        if calls := message.get("tool_calls"):
            return [call for call in calls if call["id"] not in answered]
    return []


def propose_calls(
    tools: Tools,
    messages: Sequence[Message],
    *,
    thread: str,
    describe: DescribeCall = describe_call,
) -> list[dict[str, Any]]:
    """Propose the unanswered calls, and return what must wait for people, for a step
    with `GateProvider`. A call that cannot be proposed, or that needs no person, is
    left to `perform_calls`.

    `thread` is the flow's own id. `describe` must return the same details whenever the
    step runs again.
    """
    waiting = []
    for call in list_unanswered(messages):
        name, named = name_call(call, thread, describe)
        if name not in tools:
            continue
        try:
            arguments = parse_arguments(name, call["function"]["arguments"])
            proposal = tools[name].propose(arguments, **named.names)
        except InvalidArguments:
            continue
        if not is_ready(proposal):
            waiting.append(describe_waiting(proposal, named.call_id))
    return waiting


def perform_calls(
    tools: Tools,
    messages: Sequence[Message],
    *,
    thread: str,
    describe: DescribeCall = describe_call,
) -> list[Message]:
    """Perform the unanswered calls that are decided, each once, and return the messages
    with their results. What still waits has no message, so it stays unanswered. Give
    it the `describe` of `propose_calls`."""
    results = []
    for call in list_unanswered(messages):
        name, named = name_call(call, thread, describe)
        if name not in tools:
            continue
        try:
            arguments = parse_arguments(name, call["function"]["arguments"])
            found = tools[name].perform(arguments, **named.names, wait_seconds=0)
            text = format_result(found)
        except ApprovalPending:
            continue
        except (ToolError, InvalidArguments) as error:
            text = str(error)
        results.append(
            {
                "role": "tool",
                "tool_call_id": named.call_id,
                "name": name,
                "content": text,
            }
        )
    return results


def name_call(
    call: Mapping[str, Any], thread: str, describe: DescribeCall
) -> tuple[str, NamedCall]:
    """The tool and the names of a call. Raises ValueError for a flow whose id the gate
    could not take as a name."""
    run = check_thread(thread, "the id of the flow")
    named = NamedCall(run, str(call["id"]), describe(call))
    return str(call["function"]["name"]), named


def resume_flow(
    flow: type[Flow[Any]],
    flow_id: str,
    persistence: FlowPersistence,
    gate: Gate,
    *,
    wait_seconds: float = 0,
    after_crash: bool = False,
) -> Any:
    """Resume the flow where people have decided, and return what it returns: its
    result, or HumanFeedbackPending when it waits again. None when nobody has decided
    yet, or when another process resumed it first.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call, until one can go on. CrewAI forgets the pause
    before it runs the next step: with `after_crash` a flow that no longer waits begins
    again with its stored state. Pass it only if the process that ran the flow is dead.
    """
    loaded = persistence.load_pending_feedback(flow_id)
    if loaded is None:
        if not after_crash:
            return None
        return flow(persistence=persistence).kickoff(inputs={"id": flow_id})
    waiting = {value["tool_call_id"]: value for value in loaded[1].method_output}
    if not collect_decisions(waiting, gate, wait_seconds):
        return None
    try:
        paused = flow.from_pending(flow_id, persistence)
    except ValueError:  # another process was first
        return None
    return paused.resume(WAKE)
