"""smolagents: a tool calling agent whose run ends at the model's message while a call
waits, and goes on from that message when people have decided.

    agent = GateAgent([process_refund], thread="order_78291", model=model, tools=[...])
    try:
        answer = agent.run("...")
    except RunPaused as paused:
        save(paused.to_dict())                     # the process may end
    answer = resume_agent(agent, paused, gate)     # later, in any process

smolagents has no approval, keeps no run, and gives a tool no id of its call. The agent
proposes the calls of a message before it runs any of them, and performs those of the
gate itself: it redeems the grant right before the effect. A `CodeAgent` calls tools
from code that the model writes, which cannot pause; it has no adapter.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smolagents import ActionStep, Model, TaskStep, Tool, ToolCall, ToolCallingAgent
from smolagents.memory import SystemPromptStep
from smolagents.models import ChatMessage
from smolagents.monitoring import Timing
from smolagents.utils import AgentError

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
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
from .decisions import PlainException, are_all_ready, describe_waiting, is_ready
from .flags import AdapterFlags

FLAGS = AdapterFlags(
    framework="smolagents",
    minimum="1.26.0",
    partial_ok=False,
    binds_request=False,
)
FLAGS.check_version("the adapter was not tested with a release before it.")

DescribeCall = Callable[[ChatMessage, str], Details]
"""Takes the model's message and the id of one of its calls."""


def describe_call(message: ChatMessage, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    return describe_words(message.content if isinstance(message.content, str) else "")


@dataclass
class RunPaused(PlainException):
    """The run has ended because calls wait for people. `task` and `steps` are those of
    the run so far, `message` the model's with the calls, all as JSON; `waiting` is what
    waits, as `describe_waiting` has it, and `nested` has the runs of nested agents, by
    the id of the call that runs each."""

    task: str
    steps: list[dict[str, Any]]
    message: dict[str, Any]
    waiting: list[dict[str, Any]]
    nested: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NestedAgent:
    """An agent behind a tool with one argument, `task`."""

    agent: GateAgent
    description: str = "Hand a task to another agent."


class GateTool(Tool):
    """What the model reads of a tool. Only the agent performs its calls."""

    skip_forward_signature_validation = True

    def __init__(self, name: str, description: str, schema: Mapping[str, Any]) -> None:
        self.name = name
        self.description = description or name
        self.inputs = {
            key: build_input(key, found, required=key in schema.get("required", []))
            for key, found in schema["properties"].items()
        }
        self.output_type = "string"
        super().__init__()

    def forward(self, **_: Any) -> str:
        """Refuse a call that the agent does not perform."""
        raise NotImplementedError(
            f"{self.name} was not performed: give it a GateAgent."
        )


def build_input(
    name: str, schema: Mapping[str, Any], *, required: bool
) -> dict[str, Any]:
    """An argument, as smolagents describes one."""
    found = {
        "type": schema.get("type", "any"),
        "description": schema.get("description", name),
    }
    return found if required else {**found, "nullable": True}


class GateAgent(ToolCallingAgent):
    """A tool calling agent with tools of the gate.

    The thread of the gate is `thread`, the call id the model's. `agents` are nested
    agents by the name of their tool, and `options` those of `ToolCallingAgent`.
    `describe` must return the same details whenever it is called again.
    """

    model: Any

    def __init__(
        self,
        gated: Sequence[GatedTool[..., Any]],
        *,
        thread: str,
        agents: Mapping[str, NestedAgent] | None = None,
        describe: DescribeCall = describe_call,
        tools: Sequence[Tool] = (),
        **options: Any,
    ) -> None:
        self.thread = check_thread(thread, "thread")
        self.nested: dict[str, dict[str, Any]] = {}
        self.stored: ChatMessage | None = None
        self._gated = {tool.name: tool for tool in gated}
        self._agents = dict(agents or {})
        self._describe = describe
        self._named: dict[str, list[NamedCall]] = {}
        self._lock = threading.Lock()
        own = [GateTool(one.name, one.description, one.schema) for one in gated]
        for name, agent in self._agents.items():
            own.append(GateTool(name, agent.description, TASK_SCHEMA))
        super().__init__(tools=[*tools, *own], **options)

    def _step_stream(self, memory_step: ActionStep) -> Iterator[Any]:
        """One step; with the stored message in place of the model's when a run goes
        on."""
        if self.stored is None:
            yield from super()._step_stream(memory_step)
            return
        model, self.model = self.model, StoredAnswer(self.stored)
        self.stored = None
        try:
            yield from super()._step_stream(memory_step)
        finally:
            self.model = model

    def process_tool_calls(
        self, chat_message: ChatMessage, memory_step: ActionStep
    ) -> Iterator[Any]:
        """Run the calls of a message. Raises RunPaused while one of them waits,
        DuplicateCallId, before anything is proposed, for an id that stands twice."""
        calls = [
            ToolCall(one.function.name, one.function.arguments, one.id)
            for one in chat_message.tool_calls or []
        ]
        own = self._gated.keys() | self._agents.keys()
        if any(call.name in own for call in calls):
            self._check_calls(calls, chat_message)
        yield from super().process_tool_calls(chat_message, memory_step)

    def _check_calls(self, calls: Sequence[ToolCall], message: ChatMessage) -> None:
        check_call_ids([call.id for call in calls])
        self._named = {}
        waiting: list[dict[str, Any]] = []
        for call in calls:
            details = self._describe(message, call.id)
            named = NamedCall(self.thread, call.id, details)
            key = build_key(call.name, call.arguments)
            self._named.setdefault(key, []).append(named)
            if call.name in self._agents:
                waiting += self._run_agent(call)
            elif call.name in self._gated:
                waiting += self._propose(call, named)
        if waiting:
            steps = [dump_step(step) for step in self.memory.steps]
            kept = json.loads(message.model_dump_json())
            raise RunPaused(self.task, steps, kept, waiting, self.nested)

    def _propose(self, call: ToolCall, named: NamedCall) -> list[dict[str, Any]]:
        try:
            arguments = parse_arguments(call.name, call.arguments)
            proposal = self._gated[call.name].propose(arguments, **named.names)
        except InvalidArguments:
            return []  # the model is told when the call is performed
        return [] if is_ready(proposal) else [describe_waiting(proposal, call.id)]

    def _run_agent(self, call: ToolCall) -> list[dict[str, Any]]:
        """Run the nested agent, or go on where it paused, and return what waits."""
        inner = self._agents[call.name].agent
        run = self.nested.setdefault(call.id, {})
        if "output" in run:
            return []
        try:
            if "paused" in run:
                output = continue_run(inner, RunPaused.from_dict(run["paused"]))
            else:
                arguments = parse_arguments(call.name, call.arguments)
                output = inner.run(str(arguments.get("task", "")))
        except RunPaused as paused:
            run["paused"] = paused.to_dict()
            return paused.waiting
        run["output"] = str(output)
        return []

    def execute_tool_call(self, tool_name: str, arguments: Any) -> Any:
        """The result of a call. smolagents gives no id here; equal calls of a message
        take theirs one after the other."""
        if tool_name not in self._gated and tool_name not in self._agents:
            return super().execute_tool_call(tool_name, arguments)
        with self._lock:
            named = self._named[build_key(tool_name, arguments or {})].pop(0)
        if tool_name in self._agents:
            return self.nested[named.call_id]["output"]
        try:
            given = parse_arguments(tool_name, arguments)
            tool = self._gated[tool_name]
            return format_result(tool.perform(given, **named.names, wait_seconds=0))
        except (ToolError, InvalidArguments) as error:
            return str(error)


class StoredAnswer(Model):
    """Gives the message again with which a run paused."""

    def __init__(self, message: ChatMessage) -> None:
        super().__init__()
        self._message = message

    def generate(self, *_: Any, **__: Any) -> ChatMessage:
        return self._message


def build_key(tool: str, arguments: Any) -> str:
    """A call without its id."""
    return json.dumps([tool, arguments or {}], sort_keys=True, default=str)


def dump_step(step: Any) -> dict[str, Any]:
    """What the model reads of a step, as JSON. Images are not kept."""
    if isinstance(step, TaskStep):
        return {"task": step.task}
    calls = getattr(step, "tool_calls", None) or []
    return {
        "number": getattr(step, "step_number", 0),
        "words": getattr(step, "model_output", None) or getattr(step, "plan", None),
        "calls": [[call.name, call.arguments, call.id] for call in calls],
        "observations": getattr(step, "observations", None),
        "error": str(step.error) if getattr(step, "error", None) else "",
    }


def load_step(kept: Mapping[str, Any], agent: ToolCallingAgent) -> Any:
    """A step that `dump_step` returned. A plan becomes words of the model."""
    if "task" in kept:
        return TaskStep(task=kept["task"])
    return ActionStep(
        step_number=kept["number"],
        timing=Timing(start_time=0.0, end_time=0.0),
        model_output=kept["words"],
        tool_calls=[ToolCall(*call) for call in kept["calls"]] or None,
        observations=kept["observations"],
        error=AgentError(kept["error"], agent.logger) if kept["error"] else None,
    )


def resume_agent(
    agent: GateAgent, paused: RunPaused, gate: Gate, *, wait_seconds: float = 0
) -> Any:
    """Go on with the run when people have decided all that waits, and return the
    agent's answer. None when something is still undecided. Raises RunPaused when the
    run pauses again.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call.
    """
    if not are_all_ready(paused.waiting, gate, wait_seconds):
        return None
    return continue_run(agent, paused)


def continue_run(agent: GateAgent, paused: RunPaused) -> Any:
    """Run the agent from the model's stored message. Raises RunPaused."""
    agent.task = paused.task
    agent.interrupt_switch = False
    agent.nested = paused.nested
    agent.memory.system_prompt = SystemPromptStep(system_prompt=agent.system_prompt)
    agent.memory.steps = [load_step(step, agent) for step in paused.steps]
    agent.stored = ChatMessage.from_dict(json.loads(json.dumps(paused.message)))
    # `run` would begin with a task of the user.
    steps = list(agent._run_stream(task=paused.task, max_steps=agent.max_steps))
    return steps[-1].output
