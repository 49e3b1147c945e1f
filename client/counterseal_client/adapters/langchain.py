"""LangChain: `HumanInTheLoopMiddleware`, answered by what people decided at the gate.

    HumanInTheLoopMiddleware({"refund": review_by_gate(refund)}, interrupt_mode=...)
    agent.invoke(inputs, config)           # proposes, and suspends
    resume_agent(agent, config, gate)      # later, in any process

Both modes work, batched and per call. The middleware only pauses the agent: the tool
itself (`langgraph.build_tool`) redeems the grant right before the effect, so another
middleware, a second resume or an answer by hand performs nothing. Without this
middleware the tool suspends the agent by itself; use it where a program expects the
middleware's interrupts.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import AgentState
from langchain.agents.middleware import InterruptOnConfig
from langchain_core.messages import ToolCall
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.types import StateSnapshot

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool

from .flags import AdapterFlags
from .interrupts import build_answer, describe_fault, describe_proposal, is_batch
from .langgraph import DescribeCall, Graph, describe_call, name_call, send_answers

FLAGS = AdapterFlags(
    framework="langchain",
    minimum="1.5.0",
    partial_ok=True,  # per call; a batch is answered as a whole
    positional=True,  # in a batch
)
FLAGS.check_version("an answer was not checked before it was stored.")

# LangGraph's name for an update that copies a checkpoint and changes nothing.
COPY = "__copy__"


def review_by_gate(
    tool: GatedTool[..., Any], *, describe: DescribeCall = describe_call
) -> InterruptOnConfig:
    """The middleware's configuration of a tool that people decide on at the gate.

    The call is proposed before the agent suspends, and the interrupt's description
    names the proposal. Give `build_tool` the same `describe`. The only decisions are
    approve and reject: an edit by the reviewer reaches the tool with its grant, so it
    can name no other tool.
    """

    def propose(
        tool_call: ToolCall, state: AgentState[Any], runtime: Runtime[Any]
    ) -> str:
        call = name_call(state["messages"], get_config(), tool_call["id"], describe)
        try:
            return describe_proposal(tool.propose(tool_call["args"], **call.names))
        except InvalidArguments as error:
            return describe_fault(error)

    return InterruptOnConfig(
        allowed_decisions=["approve", "reject"], description=propose
    )


def resume_agent(
    agent: Graph,
    config: RunnableConfig,
    gate: Gate,
    *,
    wait_seconds: float = 0,
    after_crash: bool = False,
) -> Any:
    """Answer what waits and is decided, and return what the agent returns. None when
    nothing could be answered yet, or when another process resumed the agent first.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call. Answers are sent one at a time: LangChain warns
    that others may already have run when one of several is invalid. `after_crash` is
    that of `resume_graph`.
    """
    state = agent.get_state(config)
    if after_crash and state.next and not state.interrupts:
        return agent.invoke(None, config)
    if has_malformed_answer(state):
        state = discard_answer(agent, config)
    output = None
    for found in state.interrupts:
        answer = build_answer(found.value, gate, wait_seconds)
        if answer is not None:
            output = send_answers(agent, config, {found.id: answer}) or output
    return output


def has_malformed_answer(state: StateSnapshot) -> bool:
    """Whether somebody answered a batch with what is no list of decisions. LangChain
    stores such an answer before it fails on it, and fails again on every resume."""
    failed = [task for task in state.tasks if task.error]
    return len(state.tasks) == len(failed) == 1 and any(
        is_batch(found.value) for found in failed[0].interrupts
    )


def discard_answer(agent: Graph, config: RunnableConfig) -> StateSnapshot:
    """Copy the checkpoint without the stored answer, and suspend anew. Only the step
    that asks for the batch runs again, and its calls keep their proposals."""
    agent.update_state(config, None, as_node=COPY)
    agent.invoke(None, config)
    return agent.get_state(config)
