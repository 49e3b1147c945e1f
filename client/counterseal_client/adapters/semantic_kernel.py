"""Semantic Kernel: functions whose calls end the run until people have decided.

    tools = GateTools([process_refund], thread="order_78291")
    agent = ChatCompletionAgent(
        service=service, kernel=tools.add_to(Kernel()), ...
    )
    try:
        response = await agent.get_response("...")
    except RunPaused as paused:
        save(paused.to_dict())                     # the process may end
    response = await resume_agent(agent, paused, tools, gate)   # later, in any process

The kernel's filter of automatic calls proposes, and ends the run while a call waits. It
performs the call itself, since a function gets no id of its call: it redeems the grant
right before the effect. A function without the filter raises GateFilterMissing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.contents import ChatHistory, ChatMessageContent
from semantic_kernel.contents.function_call_content import FunctionCallContent
from semantic_kernel.contents.function_result_content import FunctionResultContent
from semantic_kernel.contents.utils.author_role import AuthorRole
from semantic_kernel.filters.filter_types import FilterTypes
from semantic_kernel.functions import KernelFunctionFromMethod, KernelPlugin
from semantic_kernel.functions.function_result import FunctionResult
from semantic_kernel.functions.kernel_function_decorator import kernel_function
from semantic_kernel.functions.kernel_parameter_metadata import KernelParameterMetadata

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ToolError

from .calls import (
    TASK_SCHEMA,
    NamedCall,
    check_call_ids,
    check_thread,
    describe_words,
    format_result,
    parse_arguments,
)
from .coroutines import AnyTool, perform_call, propose_call
from .decisions import PlainException, are_all_ready, describe_waiting, is_ready
from .flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="semantic-kernel",
    minimum="1.45.0",
    partial_ok=False,
    binds_request=False,
)
FLAGS.check_version("the adapter was not tested with a release before it.")

PLUGIN = "counterseal"

DescribeCall = Callable[[ChatMessageContent, str], Details]
"""Takes the model's message and the id of one of its calls."""


class GateFilterMissing(RuntimeError):
    """A gated function was run without the filter, so the call has no name at the
    gate."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} was not performed: only the filter of GateTools performs it, for a"
            " call that the model makes. Add it to the kernel with `add_to`."
        )


def describe_call(message: ChatMessageContent, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    return describe_words(message.content or "")


@dataclass
class RunPaused(PlainException):
    """The run has ended because calls wait for people. `history` is that of the chat as
    JSON, `waiting` what waits, as `describe_waiting` has it, and `nested` the runs of
    nested agents, by the id of the call that runs each."""

    history: str
    waiting: list[dict[str, Any]]
    nested: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NestedAgent:
    """An agent behind a function with one argument, `task`, and the gate's tools of
    it."""

    agent: ChatCompletionAgent
    tools: GateTools
    description: str = "Hand a task to another agent."


class GateTools:
    """The functions of the gate in one kernel, for one run, and its filter.

    The thread of the gate is `thread`, the call id the model's. `agents` are nested
    agents by the name of their function. `describe` must return the same details
    whenever it is called again.
    """

    def __init__(
        self,
        tools: Sequence[AnyTool],
        *,
        thread: str,
        agents: Mapping[str, NestedAgent] | None = None,
        describe: DescribeCall = describe_call,
    ) -> None:
        self.thread = check_thread(thread, "thread")
        self.nested: dict[str, dict[str, Any]] = {}
        self._tools = {tool.name: tool for tool in tools}
        self._agents = dict(agents or {})
        self._describe = describe
        self._proposing = asyncio.Lock()

    def add_to(self, kernel: Kernel) -> Kernel:
        """Add the functions and the filter to the kernel, and return it."""
        functions = [
            build_function(tool.name, tool.description, tool.schema)
            for tool in self._tools.values()
        ]
        for name, agent in self._agents.items():
            functions.append(build_function(name, agent.description, TASK_SCHEMA))
        kernel.add_plugin(KernelPlugin(name=PLUGIN, functions=functions))
        kernel.add_filter(FilterTypes.AUTO_FUNCTION_INVOCATION, self.run_filter)
        return kernel

    def owns(self, call: FunctionCallContent) -> bool:
        """Whether a call is of a function of the gate."""
        known = self._tools.keys() | self._agents.keys()
        return call.plugin_name == PLUGIN and call.function_name in known

    async def run_filter(self, context: Any, next: Any) -> None:
        """The filter: perform the call if all of its message are decided. Raises
        RunPaused while one of them waits, DuplicateCallId, before anything is proposed,
        for an id that stands twice."""
        call = context.function_call_content
        if call is None or not self.owns(call):
            await next(context)
            return
        async with self._proposing:  # the calls of a message come at once
            message = find_calling_message(context.chat_history, call.id)
            waiting = await self._propose_all(list_calls(message), message)
        if waiting:
            history = context.chat_history.serialize()
            raise RunPaused(history, waiting, self.nested)
        text = await self._perform(call, message)
        metadata = context.function.metadata
        context.function_result = FunctionResult(function=metadata, value=text)

    async def _propose_all(
        self, calls: list[FunctionCallContent], message: ChatMessageContent
    ) -> list[dict[str, Any]]:
        """Propose the calls of a message, and return what waits."""
        check_call_ids([call.id for call in calls])
        waiting: list[dict[str, Any]] = []
        for call in filter(self.owns, calls):
            if call.function_name in self._agents:
                waiting += await self._run_agent(call)
            else:
                waiting += await self._propose(call, message)
        return waiting

    async def _propose(
        self, call: FunctionCallContent, message: ChatMessageContent
    ) -> list[dict[str, Any]]:
        try:
            arguments = parse_arguments(call.function_name, call.arguments)
            named = self._name_call(call, message)
            tool = self._tools[call.function_name]
            proposal = await propose_call(tool, arguments, named)
        except InvalidArguments:
            return []  # the model is told when the call is performed
        return [] if is_ready(proposal) else [describe_waiting(proposal, call.id)]

    async def _run_agent(self, call: FunctionCallContent) -> list[dict[str, Any]]:
        """Run the nested agent, or go on where it paused, and return what waits."""
        inner = self._agents[call.function_name]
        run = self.nested.setdefault(call.id, {})
        if "output" in run:
            return []
        try:
            if "paused" in run:
                paused = RunPaused.from_dict(run["paused"])
                found = await continue_run(inner.agent, paused, inner.tools)
            else:
                given = parse_arguments(call.function_name, call.arguments)
                found = await inner.agent.get_response(given["task"])
        except RunPaused as paused:
            run["paused"] = paused.to_dict()
            return paused.waiting
        run["output"] = str(found.message.content)
        return []

    def _name_call(
        self, call: FunctionCallContent, message: ChatMessageContent
    ) -> NamedCall:
        return NamedCall(self.thread, call.id, self._describe(message, call.id))

    async def _perform(
        self, call: FunctionCallContent, message: ChatMessageContent
    ) -> str:
        """The result of a call, or why there is none, for the model."""
        if call.function_name in self._agents:
            return str(self.nested[call.id]["output"])
        try:
            arguments = parse_arguments(call.function_name, call.arguments)
            tool = self._tools[call.function_name]
            named = self._name_call(call, message)
            return format_result(await perform_call(tool, arguments, named))
        except (ToolError, InvalidArguments) as error:
            return str(error)


def build_function(
    name: str, description: str, schema: Mapping[str, Any]
) -> KernelFunctionFromMethod:
    """What the model reads of a function. Its method is never run by the filter."""

    @kernel_function(name=name, description=description or name)
    def refuse(**_: Any) -> str:
        raise GateFilterMissing(name)

    parameters = [
        KernelParameterMetadata(
            name=key,
            type_=str(found.get("type", "object")),
            is_required=key in schema.get("required", []),
            schema_data=found,
        )
        for key, found in schema["properties"].items()
    ]
    return KernelFunctionFromMethod(refuse, PLUGIN, parameters=parameters)


def list_calls(message: ChatMessageContent) -> list[FunctionCallContent]:
    return [one for one in message.items if isinstance(one, FunctionCallContent)]


def find_calling_message(history: ChatHistory, call_id: str) -> ChatMessageContent:
    """The newest message that has this call; an empty one if the history was cut."""
    for message in reversed(history.messages):
        if any(call.id == call_id for call in list_calls(message)):
            return message
    return ChatMessageContent(role=AuthorRole.ASSISTANT, content="")


async def resume_agent(
    agent: ChatCompletionAgent,
    paused: RunPaused,
    tools: GateTools,
    gate: Gate,
    *,
    wait_seconds: float = 0,
) -> Any:
    """Go on with the run when people have decided all that waits, and return what the
    agent returns, whose thread has the whole chat. None when something is still
    undecided. Raises RunPaused when the run pauses again.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call.
    """
    if not await asyncio.to_thread(are_all_ready, paused.waiting, gate, wait_seconds):
        return None
    return await continue_run(agent, paused, tools)


async def continue_run(
    agent: ChatCompletionAgent, paused: RunPaused, tools: GateTools
) -> Any:
    """Run the calls that have no result yet, then the agent. Raises RunPaused."""
    tools.nested = paused.nested
    history = ChatHistory.restore_chat_history(paused.history)
    if history.messages and history.messages[0].role == AuthorRole.SYSTEM:
        history.messages.pop(0)  # the agent writes its instructions itself
    answered = {
        one.id
        for message in history.messages
        for one in message.items
        if isinstance(one, FunctionResultContent)
    }
    for message in list(history.messages):
        for call in list_calls(message):
            if call.id not in answered:
                await agent.kernel.invoke_function_call(call, history)
    return await agent.get_response(thread=ChatHistoryAgentThread(history))
