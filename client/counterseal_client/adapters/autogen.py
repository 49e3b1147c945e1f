"""AutoGen: an assistant whose run ends at the model's answer while a call waits, and
goes on from that answer when people have decided.

    tools = GateTools([process_refund], thread="order_78291")
    agent = AssistantAgent(
        "post", tools.watch_model(client), workbench=[tools.workbench]
    )
    try:
        result = await agent.run(task="...")
    except RunPaused as paused:
        save(paused.to_dict(), await agent.save_state())   # the process may end
    await agent.load_state(state)
    result = await resume_agent(agent, paused, tools, gate)   # later, in any process

AutoGen has no approval of a tool's call, and an assistant whose tool raises never
returns. So the model's client pauses the run, before the assistant sees the calls. The
workbench redeems the grant right before the effect.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult
from autogen_core.tools import TextResultContent, ToolResult, Workbench

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
    framework="autogen-agentchat",
    minimum="0.7.5",
    partial_ok=False,
    binds_request=False,
)
FLAGS.check_version("the adapter was not tested with a release before it.")

NOT_SEEN = (
    "The call was not performed: it did not come from the model's client that the gate"
    " watches."
)

DescribeCall = Callable[[CreateResult, str], Details]
"""Takes the model's answer and the id of one of its calls."""


def describe_call(answer: CreateResult, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    return describe_words(answer.thought or "")


@dataclass
class RunPaused(PlainException):
    """The run has ended because calls wait for people. `answer` is the model's answer
    as JSON, `waiting` what waits, as `describe_waiting` has it, and `nested` the runs
    of nested agents, by the id of the call that runs each."""

    answer: dict[str, Any]
    waiting: list[dict[str, Any]]
    nested: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NestedAgent:
    """An agent behind a tool with one argument, `task`, and the gate's tools of it."""

    agent: AssistantAgent
    tools: GateTools
    description: str = "Hand a task to another agent."


class GateTools:
    """The tools of the gate for one assistant in one run: its workbench, and the client
    of its model.

    The thread of the gate is `thread`, the call id the model's. `agents` are nested
    agents by the name of their tool. `describe` must return the same details whenever
    it is called again.
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
        self.tools = {tool.name: tool for tool in tools}
        self.agents = dict(agents or {})
        self.describe = describe
        self.nested: dict[str, dict[str, Any]] = {}
        self.stored: CreateResult | None = None
        self.details: dict[str, Details] = {}
        self.workbench = GateWorkbench(self)

    def watch_model(self, client: ChatCompletionClient) -> GateModelClient:
        """The client with a look at each answer of the model."""
        return GateModelClient(client, self)

    async def check_answer(self, answer: CreateResult) -> None:
        """Propose the calls of the gate's tools. Raises RunPaused while one of them
        waits, DuplicateCallId, before anything is proposed, for an id that stands
        twice."""
        calls = answer.content if isinstance(answer.content, list) else []
        own = self.tools.keys() | self.agents.keys()
        if not any(call.name in own for call in calls):
            return
        check_call_ids([call.id for call in calls])
        waiting: list[dict[str, Any]] = []
        for call in calls:
            if call.name in self.agents:
                waiting += await self._run_agent(call)
            elif call.name in self.tools:
                waiting += await self._propose(call, answer)
        if waiting:
            raise RunPaused(answer.model_dump(mode="json"), waiting, self.nested)

    async def _propose(
        self, call: FunctionCall, answer: CreateResult
    ) -> list[dict[str, Any]]:
        self.details[call.id] = self.describe(answer, call.id)
        named = NamedCall(self.thread, call.id, self.details[call.id])
        try:
            arguments = parse_arguments(call.name, call.arguments)
            proposal = await propose_call(self.tools[call.name], arguments, named)
        except InvalidArguments:
            return []  # the tool tells the model
        return [] if is_ready(proposal) else [describe_waiting(proposal, call.id)]

    async def _run_agent(self, call: FunctionCall) -> list[dict[str, Any]]:
        """Run the nested agent, or go on where it paused, and return what waits."""
        inner = self.agents[call.name]
        run = self.nested.setdefault(call.id, {})
        if "output" in run:
            return []
        try:
            if "paused" in run:
                await inner.agent.load_state(run["state"])
                paused = RunPaused.from_dict(run["paused"])
                found = await continue_run(inner.agent, paused, inner.tools)
            else:
                task = str(parse_arguments(call.name, call.arguments).get("task", ""))
                found = await inner.agent.run(task=task)
        except RunPaused as paused:
            run["state"] = dict(await inner.agent.save_state())
            run["paused"] = paused.to_dict()
            return paused.waiting
        run["output"] = found.messages[-1].to_text()
        return []

    async def perform(self, name: str, arguments: Any, call_id: str) -> ToolResult:
        """The result of a call, or why there is none, for the model."""
        if name in self.agents:
            output = self.nested.get(call_id, {}).get("output", NOT_SEEN)
            return build_result(name, output)
        if call_id not in self.details:
            return build_result(name, NOT_SEEN, error=True)
        call = NamedCall(self.thread, call_id, self.details[call_id])
        try:
            found = await perform_call(self.tools[name], dict(arguments or {}), call)
        except (ToolError, InvalidArguments) as error:
            return build_result(name, str(error), error=True)
        return build_result(name, format_result(found))


def build_result(name: str, text: str, *, error: bool = False) -> ToolResult:
    """What the model reads of a call."""
    content = [TextResultContent(content=text)]
    return ToolResult(name=name, result=content, is_error=error)


class GateModelClient(ChatCompletionClient):
    """A model's client that ends the run at an answer with a call that waits, and gives
    that answer again when the run goes on."""

    def __init__(self, client: ChatCompletionClient, tools: GateTools) -> None:
        self._client = client
        self._tools = tools

    async def create(self, messages: Any, **options: Any) -> CreateResult:
        """Raises RunPaused."""
        answer, self._tools.stored = self._tools.stored, None
        if answer is None:
            answer = await self._client.create(messages, **options)
        await self._tools.check_answer(answer)
        return answer

    async def create_stream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
        """Raises RunPaused."""
        answer, self._tools.stored = self._tools.stored, None
        if answer is not None:
            await self._tools.check_answer(answer)
            yield answer
            return
        async for piece in self._client.create_stream(messages, **options):
            if isinstance(piece, CreateResult):
                await self._tools.check_answer(piece)
            yield piece

    async def close(self) -> None:
        await self._client.close()

    def actual_usage(self) -> Any:
        return self._client.actual_usage()

    def total_usage(self) -> Any:
        return self._client.total_usage()

    def count_tokens(self, messages: Any, **options: Any) -> int:
        return int(self._client.count_tokens(messages, **options))

    def remaining_tokens(self, messages: Any, **options: Any) -> int:
        return int(self._client.remaining_tokens(messages, **options))

    @property
    def capabilities(self) -> Any:
        return self._client.capabilities

    @property
    def model_info(self) -> Any:
        return self._client.model_info


class GateWorkbench(Workbench):
    """The tools, as an assistant runs them."""

    def __init__(self, tools: GateTools) -> None:
        self._tools = tools

    async def list_tools(self) -> list[Any]:
        """What the model reads of the tools."""
        schemas = {
            tool.name: (tool.description, tool.schema)
            for tool in self._tools.tools.values()
        }
        for name, agent in self._tools.agents.items():
            schemas[name] = (agent.description, TASK_SCHEMA)
        return [
            {"name": name, "description": description or name, "parameters": schema}
            for name, (description, schema) in schemas.items()
        ]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: Any = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """Perform a call that people have decided."""
        return await self._tools.perform(name, arguments, call_id or "")

    async def start(self) -> None:
        """There is nothing to start."""

    async def stop(self) -> None:
        """There is nothing to stop."""

    async def reset(self) -> None:
        """There is nothing to reset."""

    async def save_state(self) -> Mapping[str, Any]:
        """The gate keeps what there is."""
        return {}

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """There is nothing to load."""


async def resume_agent(
    agent: AssistantAgent,
    paused: RunPaused,
    tools: GateTools,
    gate: Gate,
    *,
    wait_seconds: float = 0,
) -> Any:
    """Go on with the run when people have decided all that waits, and return what the
    agent returns. None when something is still undecided. Raises RunPaused when the run
    pauses again.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call. The agent has the state that it paused with.
    """
    if not await asyncio.to_thread(are_all_ready, paused.waiting, gate, wait_seconds):
        return None
    return await continue_run(agent, paused, tools)


async def continue_run(
    agent: AssistantAgent, paused: RunPaused, tools: GateTools
) -> Any:
    """Run the agent from the model's stored answer."""
    tools.nested = paused.nested
    tools.stored = CreateResult.model_validate(paused.answer)
    return await agent.run(task=None)
