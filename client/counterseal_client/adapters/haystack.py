"""Haystack: an agent whose run ends, to be run again from its messages, until people
have decided.

    hook = GateHook([process_refund])              # functions behind the gate
    agent = Agent(
        ..., tools=hook.tools, hooks={"before_run": [hook], "before_tool": [hook]}
    )
    try:
        agent.run(messages=..., hook_context={"thread": "order_78291"})
    except RunPaused as paused:
        save(paused.to_dict())                     # the process may end
    resume_agent(agent, RunPaused.from_dict(load()), gate)   # later, in any process

The hook performs the calls of these tools itself, since Haystack gives a tool no id of
its call. It redeems the grant right before the effect. A tool without the hook raises
GateHookMissing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from haystack.components.agents import Agent
from haystack.components.agents.state.state import State
from haystack.components.agents.state.state_utils import replace_values
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import Tool
from haystack.tools.errors import ToolInvocationError

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import (
    NamedCall,
    check_call_ids,
    check_thread,
    describe_words,
    format_result,
)
from .decisions import collect_decisions, describe_waiting
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="haystack-ai", minimum="3.4.1", binds_request=False)
FLAGS.check_version("the adapter was not tested with a release before it.")

DescribeCall = Callable[[ChatMessage, str], Details]
"""Takes the model's message and the id of one of its calls."""


class GateHookMissing(RuntimeError):
    """A gated tool was run without `GateHook`, so the call has no name at the gate."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool} was not performed: only GateHook performs it. Register the hook at"
            " before_run and before_tool of the agent."
        )


@dataclass
class RunPaused(Exception):
    """The run has ended because calls wait for people. `messages` are those of the run
    so far, `waiting` what waits, as `describe_waiting` has it, and `nested` the paused
    runs of nested agents, by the id of the call that runs each."""

    thread: str
    messages: list[ChatMessage]
    waiting: list[dict[str, Any]]
    nested: dict[str, RunPaused] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The values that `json.dumps` writes, for `from_dict`."""
        return {
            "thread": self.thread,
            "messages": [message.to_dict() for message in self.messages],
            "waiting": self.waiting,
            "nested": {key: value.to_dict() for key, value in self.nested.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunPaused:
        """What `to_dict` returned."""
        nested = {key: cls.from_dict(value) for key, value in data["nested"].items()}
        messages = [ChatMessage.from_dict(message) for message in data["messages"]]
        return cls(data["thread"], messages, data["waiting"], nested)


def describe_call(message: ChatMessage, call_id: str) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    return describe_words(message.text or "")


class GateHook:
    """Performs the calls of gated tools, and ends the run while one of them waits.

    The thread of the gate is `thread` of the run's `hook_context`, the call id the
    model's. `agents` are nested agents, by the name of the tool that runs each with its
    argument `task`, and `others` all other tools of the agent: the hook runs their
    calls beside those of the gate, because Haystack begins a run with the model.
    `describe` must return the same details whenever the hook runs again.
    """

    allowed_hook_points = ("before_run", "before_tool")

    def __init__(
        self,
        tools: Sequence[GatedTool[..., Any]],
        *,
        agents: Mapping[str, Agent] | None = None,
        others: Sequence[Tool] = (),
        describe: DescribeCall = describe_call,
    ) -> None:
        self.gated = {tool.name: tool for tool in tools}
        self.others = {tool.name: tool for tool in others}
        self.agents = agents or {}
        self.describe = describe

    @property
    def tools(self) -> list[Tool]:
        gated = [
            build_tool(tool.name, tool.description, tool.schema)
            for tool in self.gated.values()
        ]
        task = {"type": "object", "properties": {"task": {"type": "string"}}}
        nested = [build_tool(name, "", task) for name in self.agents]
        return [*gated, *nested, *self.others.values()]

    def run(self, state: State) -> None:
        """Perform what is decided of the newest message's calls. A message without a
        call of the gate is left to the agent. Raises RunPaused while something waits,
        DuplicateCallId, before anything runs, for an id that stands twice."""
        messages = list(state.data.get("messages") or [])
        calls = messages[-1].tool_calls if messages else []
        own = self.gated.keys() | self.agents.keys()
        if not any(call.tool_name in own for call in calls):
            return
        turn = _Turn(self, messages.pop(), state.data.get("hook_context") or {})
        turn.perform_calls()
        messages += turn.build_messages()
        if turn.waiting:
            raise RunPaused(turn.thread, messages, turn.waiting, turn.nested)
        state.set("messages", messages, handler_override=replace_values)


def build_tool(name: str, description: str, schema: dict[str, Any]) -> Tool:
    """What a model reads of a tool. Its function is never run."""

    def refuse(**_: Any) -> str:
        raise GateHookMissing(name)

    return Tool(
        name=name, description=description or name, parameters=schema, function=refuse
    )


class _Turn:
    """One message of the model with calls, and what became of each."""

    def __init__(
        self,
        hook: GateHook,
        message: ChatMessage,
        context: Mapping[str, Any],
    ) -> None:
        self._hook = hook
        self.thread = check_thread(
            str(context.get("thread", "")), "hook_context.thread"
        )
        self._message = message
        self._paused: Mapping[str, RunPaused] = context.get("nested", {})
        self.waiting: list[dict[str, Any]] = []
        self.nested: dict[str, RunPaused] = {}
        self._results: list[ChatMessage] = []

    def perform_calls(self) -> None:
        """Perform each call, or find out that it waits."""
        calls = self._message.tool_calls
        check_call_ids([call.id for call in calls])
        for call in calls:
            if call.tool_name in self._hook.gated:
                self._perform(call)
            elif call.tool_name in self._hook.agents:
                self._run_agent(call)
            else:
                self._invoke(call)

    def _perform(self, call: ToolCall) -> None:
        call_id = str(call.id)
        details = self._hook.describe(self._message, call_id)
        names = NamedCall(self.thread, call_id, details).names
        try:
            tool = self._hook.gated[call.tool_name]
            found = tool.perform(call.arguments, **names, wait_seconds=0)
        except ApprovalPending as pending:
            self.waiting.append(describe_waiting(pending.proposal, call_id))
        except (ToolError, InvalidArguments) as error:
            self._answer(call, str(error), error=True)
        else:
            self._answer(call, format_result(found))

    def _run_agent(self, call: ToolCall) -> None:
        """Run a nested agent, or go on where it paused."""
        call_id = str(call.id)
        paused = self._paused.get(call_id)
        task = ChatMessage.from_user(str(call.arguments.get("task", "")))
        first = paused or RunPaused(self.thread, [task], [])
        try:
            found = run_again(self._hook.agents[call.tool_name], first)
        except RunPaused as again:
            self.nested[call_id] = again
            self.waiting += again.waiting
        else:
            self._answer(call, found["last_message"].text or "")

    def _invoke(self, call: ToolCall) -> None:
        """Run a call that needs no gate."""
        tool = self._hook.others.get(call.tool_name)
        if tool is None:
            self._answer(call, f"There is no tool {call.tool_name}.", error=True)
            return
        try:
            self._answer(call, str(tool.invoke(**call.arguments)))
        except ToolInvocationError as error:
            self._answer(call, str(error), error=True)

    def _answer(self, call: ToolCall, text: str, *, error: bool = False) -> None:
        self._results.append(ChatMessage.from_tool(text, origin=call, error=error))

    def build_messages(self) -> list[ChatMessage]:
        """The answered calls with their results, then those that wait in a message of
        their own, for the next run."""
        answered = [result.tool_call_results[0].origin for result in self._results]
        others = [call for call in self._message.tool_calls if call not in answered]
        text, meta = self._message.text, self._message.meta
        messages = []
        if answered:
            found = ChatMessage.from_assistant(text, tool_calls=answered, meta=meta)
            messages = [found, *self._results]
        if others:
            messages.append(ChatMessage.from_assistant(text, tool_calls=others))
        return messages


def resume_agent(
    agent: Agent, paused: RunPaused, gate: Gate, *, wait_seconds: float = 0
) -> dict[str, Any] | None:
    """Run the agent again where people have decided, and return what it returns. None
    when nobody has decided yet. Raises RunPaused when something still waits.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` for each call, until one can go on.
    """
    waiting = {str(number): value for number, value in enumerate(paused.waiting)}
    if not collect_decisions(waiting, gate, wait_seconds):
        return None
    return run_again(agent, paused)


def run_again(agent: Agent, paused: RunPaused) -> dict[str, Any]:
    """Run the agent from the messages of a paused run, in the same thread."""
    context = {"thread": paused.thread, "nested": paused.nested}
    found: dict[str, Any] = agent.run(messages=paused.messages, hook_context=context)
    return found
