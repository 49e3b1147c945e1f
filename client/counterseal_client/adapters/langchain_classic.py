"""LangChain's older agents (`AgentExecutor` of `langchain-classic`): runs that stop,
with their steps stored, until people have decided.

    tools = [build_tool(process_refund)]           # in place of a handler that asks
    executor = GateExecutor(agent=agent, tools=tools)
    run = start_run({"input": ...}, thread="order_78291")
    run = executor.continue_run(run)               # proposes, and returns
    run = resume_run(executor, run, gate)          # later, in any process

A stored step is not run again; the model is asked again only for the next one. A call
that waits asks the gate for its own proposal and redeems the grant right before the
effect. It takes the place of `HumanApprovalCallbackHandler`, which holds the process
and whose answer is bound to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_classic.agents import AgentExecutor
from langchain_classic.agents.output_parsers.tools import ToolAgentAction
from langchain_core.agents import (
    AgentAction,
    AgentActionMessageLog,
    AgentFinish,
    AgentStep,
)
from langchain_core.exceptions import OutputParserException
from langchain_core.messages import messages_from_dict, messages_to_dict
from langchain_core.tools import BaseTool, StructuredTool

from counterseal_client.errors import InvalidArguments
from counterseal_client.gate import Gate
from counterseal_client.gated_tools import GatedTool
from counterseal_client.operations import Details
from counterseal_client.tool_errors import ApprovalPending, ToolError

from .calls import (
    check_call_ids,
    check_thread,
    describe_words,
    format_result,
    parse_arguments,
)
from .decisions import collect_decisions, describe_waiting
from .flags import AdapterFlags

FLAGS = AdapterFlags(framework="langchain-classic", minimum="1.0.8")
FLAGS.check_version("the adapter was not tested with a release before it.")

DescribeAction = Callable[[AgentAction], Details]


def describe_action(action: AgentAction) -> Details:
    """By default, the model's words beside its calls are the rationale of each."""
    log = getattr(action, "message_log", None)
    return describe_words(str(log[0].content) if log else action.log)


@dataclass(slots=True)
class Turn:
    """What the model asked for at once. `texts` has the results so far by position, and
    `nested` the runs of nested agents that wait."""

    actions: list[AgentAction]
    texts: dict[int, str] = field(default_factory=dict)
    nested: dict[int, StoredRun] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The turn as JSON."""
        return {
            "actions": [dump_action(action) for action in self.actions],
            "texts": self.texts,
            "nested": {key: run.to_dict() for key, run in self.nested.items()},
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> Turn:
        """The turn of `to_dict`."""
        nested = kept["nested"].items()
        return cls(
            [load_action(action) for action in kept["actions"]],
            {int(key): text for key, text in kept["texts"].items()},
            {int(key): StoredRun.from_dict(run) for key, run in nested},
        )

    def name_calls(self, number: int) -> list[str]:
        """The ids of the calls: the model's, or turn and position where the agent's
        model gives none."""
        return [
            str(getattr(action, "tool_call_id", None) or f"turn{number}.call{position}")
            for position, action in enumerate(self.actions)
        ]


@dataclass(frozen=True, slots=True)
class StoredRun:
    """How a run stands. `waiting` is what waits, as `describe_waiting` has it; `output`
    that of the executor once nothing waits. Keep `to_dict` as a secret."""

    inputs: dict[str, Any]
    thread: str
    turns: list[Turn] = field(default_factory=list)
    waiting: tuple[dict[str, Any], ...] = ()
    output: dict[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON."""
        return {
            "inputs": self.inputs,
            "thread": self.thread,
            "turns": [turn.to_dict() for turn in self.turns],
            "waiting": list(self.waiting),
            "output": self.output,
        }

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> StoredRun:
        """The run of `to_dict`."""
        return cls(
            kept["inputs"],
            kept["thread"],
            [Turn.from_dict(turn) for turn in kept["turns"]],
            tuple(kept["waiting"]),
            kept["output"],
        )

    def find_turn(self, steps: int) -> Turn | None:
        """The turn after so many steps; None if the model has not taken it."""
        for turn in self.turns:
            if steps == 0:
                return turn
            steps -= len(turn.actions)
        return None


def dump_action(action: AgentAction) -> dict[str, Any]:
    kept = {"tool": action.tool, "tool_input": action.tool_input, "log": action.log}
    if isinstance(action, AgentActionMessageLog):
        kept["message_log"] = messages_to_dict(list(action.message_log))
        kept["tool_call_id"] = getattr(action, "tool_call_id", None)
    return kept


def load_action(kept: Mapping[str, Any]) -> AgentAction:
    if "message_log" not in kept:
        return AgentAction(**kept)
    log = messages_from_dict(kept["message_log"])
    return ToolAgentAction(**{**kept, "message_log": log})


class RunPaused(Exception):
    """Calls wait for people. GateExecutor.continue_run returns `run` for it."""

    def __init__(self, run: StoredRun) -> None:
        self.run = run
        super().__init__("calls wait for people")


class GateTool(StructuredTool):
    """A tool of LangChain that only a GateExecutor performs."""

    gated: Any


class NestedTool(StructuredTool):
    """A tool of LangChain that runs another GateExecutor."""

    executor: Any


def build_nested_tool(
    executor: GateExecutor, name: str, description: str
) -> NestedTool:
    """Build a tool that hands a `task` to another agent. Its calls surface in the outer
    run, in the same thread, and the nested run is stored in the outer one."""

    def refuse(task: str) -> str:
        raise RuntimeError(f"{name} runs only in a GateExecutor.")

    return NestedTool.from_function(
        refuse, name=name, description=description, executor=executor
    )


def build_tool(tool: GatedTool[..., Any]) -> GateTool:
    """Build a tool of LangChain from a tool of Gate."""

    def refuse(**_: Any) -> str:
        raise RuntimeError(f"{tool.name} runs only in a GateExecutor.")

    return GateTool(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=tool.schema,
        func=refuse,
        gated=tool,
    )


_current: ContextVar[StoredRun | None] = ContextVar("classic_run", default=None)


class GateExecutor(AgentExecutor):
    """An AgentExecutor that stops while calls of the gate's tools wait for people.
    `describe` must return the same details whenever a call is made again."""

    describe: DescribeAction = describe_action

    def continue_run(self, run: StoredRun) -> StoredRun:
        """Run until it ends or waits, and return how it stands. Steps that are stored
        are not run again. Raises DuplicateCallId for an id that stands twice in a
        message, before any of its calls runs, and ApiError when the gate refuses a call
        as it is."""
        token = _current.set(replace(run, waiting=(), output=None))
        try:
            output = self.invoke(run.inputs)
        except RunPaused as paused:
            return paused.run
        else:
            return replace(_get_run(), output={"output": output["output"]})
        finally:
            _current.reset(token)

    def _iter_next_step(
        self,
        name_to_tool_map: dict[str, BaseTool],
        color_mapping: dict[str, str],
        inputs: dict[str, str],
        intermediate_steps: list[tuple[AgentAction, str]],
        run_manager: Any = None,
    ) -> Iterator[AgentFinish | AgentAction | AgentStep]:
        """AgentExecutor offers it for this."""
        run = _get_run()
        turn = run.find_turn(len(intermediate_steps))
        if turn is None:
            planned = self._plan_turn(inputs, intermediate_steps, run_manager)
            if isinstance(planned, AgentFinish):
                yield planned
                return
            turn = planned
            run.turns.append(turn)
        ids = turn.name_calls(run.turns.index(turn))
        check_call_ids(ids)
        yield from turn.actions

        def perform_other(action: AgentAction) -> str:
            step = self._perform_agent_action(
                name_to_tool_map, color_mapping, action, run_manager
            )
            return str(step.observation)

        waiting: list[dict[str, Any]] = []
        for position, action in enumerate(turn.actions):
            if position not in turn.texts:
                tool = name_to_tool_map.get(action.tool)
                try:
                    text = self._perform_call(
                        tool, turn, position, ids[position], perform_other
                    )
                except RunPaused as paused:
                    waiting.extend(paused.run.waiting)
                    continue
                turn.texts[position] = text
            yield AgentStep(action=action, observation=turn.texts[position])
        if waiting:
            raise RunPaused(replace(run, waiting=tuple(waiting)))

    def _perform_call(
        self,
        tool: BaseTool | None,
        turn: Turn,
        position: int,
        call_id: str,
        perform_other: Callable[[AgentAction], str],
    ) -> str:
        """The result of a call. Raises RunPaused while it waits."""
        action = turn.actions[position]
        if isinstance(tool, NestedTool):
            return self._run_nested(tool.executor, turn, position)
        if not isinstance(tool, GateTool):
            return perform_other(action)
        try:
            return self._perform_gated(tool.gated, action, call_id)
        except ApprovalPending as pending:
            facts = describe_waiting(pending.proposal, call_id)
            raise RunPaused(replace(_get_run(), waiting=(facts,))) from pending

    def _run_nested(self, executor: GateExecutor, turn: Turn, position: int) -> str:
        """The output of a nested agent. Raises RunPaused while its calls wait."""
        given = turn.actions[position].tool_input
        text = given if isinstance(given, str) else str(given.get("task", ""))
        first = StoredRun({"input": text}, _get_run().thread)
        found = executor.continue_run(turn.nested.pop(position, first))
        if found.output is None:
            turn.nested[position] = found
            raise RunPaused(found)
        return str(found.output["output"])

    def _plan_turn(
        self,
        inputs: dict[str, str],
        intermediate_steps: list[tuple[AgentAction, str]],
        run_manager: Any,
    ) -> Turn | AgentFinish:
        """What the model does next. Text that no parser understands becomes a step with
        its own result, as `handle_parsing_errors` says."""
        steps = self._prepare_intermediate_steps(intermediate_steps)
        callbacks = run_manager.get_child() if run_manager else None
        try:
            found = self._action_agent.plan(steps, callbacks=callbacks, **inputs)
        except OutputParserException as error:
            how = self.handle_parsing_errors
            if not how:
                raise
            text = how(error) if callable(how) else how
            text = "Invalid or incomplete response" if text is True else str(text)
            return Turn([AgentAction("_Exception", text, str(error))], {0: text})
        if isinstance(found, AgentFinish):
            return found
        return Turn([found] if isinstance(found, AgentAction) else list(found))

    def _perform_gated(
        self, tool: GatedTool[..., Any], action: AgentAction, call_id: str
    ) -> str:
        """The result of a call, or why there is none, for the model."""
        given = action.tool_input
        try:
            arguments = parse_arguments(tool.name, given)
            result = tool.perform(
                arguments,
                thread=_get_run().thread,
                call_id=call_id,
                wait_seconds=0,
                **self.describe(action),
            )
        except ApprovalPending:
            raise
        except (ToolError, InvalidArguments) as error:
            return str(error)
        return format_result(result)

    async def ainvoke(self, *_: Any, **__: Any) -> Any:
        """Not offered: run `continue_run` in a thread."""
        raise NotImplementedError("Call continue_run with asyncio.to_thread.")


def _get_run() -> StoredRun:
    run = _current.get()
    if run is None:
        raise RuntimeError("Run a GateExecutor with continue_run.")
    return run


def start_run(inputs: dict[str, Any], *, thread: str) -> StoredRun:
    """A run that has not begun, for `GateExecutor.continue_run`. `thread` names it at
    the gate."""
    return StoredRun(inputs, check_thread(thread, "thread"))


def resume_run(
    executor: GateExecutor, run: StoredRun, gate: Gate, *, wait_seconds: float = 0
) -> StoredRun | None:
    """Resume the run where people have decided. None when nobody has decided yet.

    Any process may call this, at any time and as often as it likes. It waits for at
    most `wait_seconds` until a first call is decided.
    """
    waiting = {str(facts["tool_call_id"]): facts for facts in run.waiting}
    if not collect_decisions(waiting, gate, wait_seconds):
        return None
    return executor.continue_run(run)
