"""LangGraph: tools that suspend the graph until people have decided.

    refund = build_tool(process_refund)            # for ToolNode or create_agent
    graph.invoke(inputs, config)                   # suspends; nothing waits
    resume_graph(graph, config, gate)              # later, in any process

The interrupt only wakes the graph. What a resume says is no authority: the tool asks
the gate for its own proposal, redeems the grant right before the effect, and suspends
again while nobody has decided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.errors import UnknownInterruptError
from langgraph.prebuilt import ToolRuntime
from langgraph.pregel import Pregel
from langgraph.types import Command, interrupt

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import AsyncGatedTool, GatedTool
from counterseal_client.operations import Details
from counterseal_client.questions import ASK_DOC, TEXT_SCHEMA, format_ended_question
from counterseal_client.signatures import build_call_key
from counterseal_client.tool_errors import ApprovalPending, ToolError
from counterseal_client.tools import ToolResult

from .calls import NamedCall, check_call_id, check_thread, describe_words, format_result
from .decisions import describe_waiting, names_proposal
from .flags import AdapterFlags
from .interrupts import build_answer, describe_question, names_question

FLAGS = AdapterFlags(framework="langgraph", minimum="1.2.22")
FLAGS.check_version("a late answer could resume another interrupt of the same node.")

# Refuses a resume that names an interrupt which does not wait (`strict_resume` of the
# SDK). The library has it as a configuration key only.
STRICT_RESUME = "__pregel_strict_resume"

Graph: TypeAlias = Pregel[Any, Any, Any, Any]
DescribeCall = Callable[[AIMessage, str], Details]
"""Takes the model's message and the id of one of its calls."""


def describe_call(message: AIMessage, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    return describe_words(message.text)


def build_tool(
    tool: GatedTool[..., Any], *, describe: DescribeCall = describe_call
) -> BaseTool:
    """Build a LangChain tool that ToolNode and `create_agent` can run.

    The thread of the gate is the graph's `thread_id`, the call id the model's. The
    graph needs a checkpointer. `describe` must return the same details whenever the
    node runs again.
    """

    def run(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
        call = name_running_call(runtime, describe)
        while True:
            try:
                result = tool.perform(arguments, **call.names, wait_seconds=0)
            except ApprovalPending as pending:
                # Suspends the graph. After a resume it returns, and the gate is asked.
                interrupt(describe_waiting(pending.proposal, call.call_id))
            except (ToolError, InvalidArguments) as error:
                return answer_error(tool.name, call.call_id, error)
            else:
                return answer_result(tool.name, call.call_id, result)

    return StructuredTool.from_function(run, **_describe_tool(tool))


def build_async_tool(
    tool: AsyncGatedTool[..., Any], *, describe: DescribeCall = describe_call
) -> BaseTool:
    """As `build_tool`, for a graph that is run with `ainvoke` or `astream`."""

    async def run(runtime: ToolRuntime, **arguments: Any) -> ToolMessage:
        call = name_running_call(runtime, describe)
        while True:
            try:
                result = await tool.perform(arguments, **call.names, wait_seconds=0)
            except ApprovalPending as pending:
                interrupt(describe_waiting(pending.proposal, call.call_id))
            except (ToolError, InvalidArguments) as error:
                return answer_error(tool.name, call.call_id, error)
            else:
                return answer_result(tool.name, call.call_id, result)

    return StructuredTool.from_function(coroutine=run, **_describe_tool(tool))


def build_question_tool(
    gate: Gate,
    to: str,
    *,
    schema: Mapping[str, Any] = TEXT_SCHEMA,
    name: str = "ask_human",
    expires: timedelta | float = timedelta(days=1),
) -> BaseTool:
    """Build a tool with which the model asks people: the queue `to`, or `@login`.

    The graph suspends until somebody answers, and `resume_graph` goes on. The model
    reads the text of a one-text form, else the answer as JSON.
    """

    def ask(question: str, runtime: ToolRuntime) -> str:
        call = name_running_call(runtime, lambda message, call_id: {})
        asked = gate.open_question(
            to,
            schema,
            question,
            expires=expires,
            thread=call.thread,
            idempotency_key=build_call_key(call.thread, call.call_id),
        )
        while asked.status == "open":
            # Suspends the graph. After a resume it returns, and the gate is asked.
            interrupt(describe_question(asked))
            asked = gate.get_question(asked.id)
        return format_ended_question(asked)

    return StructuredTool.from_function(ask, name=name, description=ASK_DOC)


def _describe_tool(
    tool: GatedTool[..., Any] | AsyncGatedTool[..., Any],
) -> dict[str, Any]:
    """What a model reads of the tool. Its arguments are checked by the tool itself, in
    the same way before and after an approval."""
    return {
        "name": tool.name,
        "description": tool.description or tool.name,
        "args_schema": tool.schema,
        "infer_schema": False,
    }


def name_running_call(runtime: ToolRuntime, describe: DescribeCall) -> NamedCall:
    """The call that a tool is running. Raises ValueError for a call or a run that the
    gate could not name."""
    state = runtime.state
    messages = state.get("messages", []) if isinstance(state, Mapping) else []
    return name_call(messages, runtime.config, runtime.tool_call_id, describe)


def name_call(
    messages: Sequence[AnyMessage],
    config: RunnableConfig,
    call_id: str | None,
    describe: DescribeCall,
) -> NamedCall:
    """The call of this id in the newest message that has it. Raises ValueError as
    above, DuplicateCallId for an id that stands twice there."""
    message = find_calling_message(messages, call_id)
    known = check_call_id(call_id, (call["id"] for call in message.tool_calls))
    return NamedCall(read_thread(config), known, describe(message, known))


def answer_result(tool: str, call_id: str, result: ToolResult) -> ToolMessage:
    return ToolMessage(format_result(result), tool_call_id=call_id, name=tool)


def answer_error(tool: str, call_id: str, error: Exception) -> ToolMessage:
    """Why there is no result, in words for the model."""
    return ToolMessage(str(error), tool_call_id=call_id, name=tool, status="error")


def read_thread(config: RunnableConfig) -> str:
    """The name of the run. Raises ValueError for a `thread_id` that the gate does not
    take as a name."""
    name = str(config.get("configurable", {}).get("thread_id", ""))
    return check_thread(name, "configurable.thread_id")


def find_calling_message(
    messages: Sequence[AnyMessage], call_id: str | None
) -> AIMessage:
    """The newest message that has this call; an empty one for a graph that keeps its
    messages elsewhere."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and any(
            call["id"] == call_id for call in message.tool_calls
        ):
            return message
    return AIMessage("")


def resume_graph(
    graph: Graph,
    config: RunnableConfig,
    gate: Gate,
    *,
    wait_seconds: float = 0,
    after_crash: bool = False,
) -> Any:
    """Resume the graph where people have decided, and return what it returns. None when
    nobody has decided yet, or when another process resumed it first.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call, until one can go on. With `after_crash` it also
    continues a run that waits for nobody: pass it only if the process that ran the
    graph is dead, because nodes that are not behind the gate run again.
    """
    state = graph.get_state(config)
    if after_crash and state.next and not state.interrupts:
        return graph.invoke(None, config)
    answers: dict[str, Any] = {}
    for found in state.interrupts:
        if names_proposal(found.value) or names_question(found.value):
            answer = build_answer(found.value, gate, 0 if answers else wait_seconds)
            answers |= {} if answer is None else {found.id: answer}
    return send_answers(graph, config, answers) if answers else None


def send_answers(
    graph: Graph, config: RunnableConfig, answers: Mapping[str, Any]
) -> Any:
    """Answer interrupts by their ids and run the graph. None, and no answer, if one of
    them no longer waits: another process was first."""
    configurable = {**config.get("configurable", {}), STRICT_RESUME: True}
    strict: RunnableConfig = {**config, "configurable": configurable}
    try:
        return graph.invoke(Command(resume=dict(answers)), strict)
    except UnknownInterruptError:
        return None
