"""Haystack: an agent with a hook before its tools, bare with a ConfirmationHook whose
strategy raises out of the run, or through Counterseal's adapter."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # before the package is imported

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.hooks.human_in_the_loop import ConfirmationHook
from haystack.hooks.human_in_the_loop.dataclasses import ToolExecutionDecision
from haystack.tools import Tool, create_tool_from_function

from counterseal_client.adapters.haystack import (
    GateHook,
    RunPaused,
    describe_call,
    resume_agent,
    run_again,
)
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, Turn, find_turn
from ..worker import Job, Pending, Report
from .driver import APPROVAL, ASK, ERASE, RAW, StoredDriver
from .toolbox import DELEGATE, GatedBox, build_toolbox


@component
class ScriptedModel:
    def __init__(self, script: Script) -> None:
        self._script = script

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        """A turn may stand in several messages."""
        said = {call.id for m in messages for call in m.tool_calls}
        calls = list_calls(find_turn(self._script, said))
        words = WORDS if calls else DONE
        return {"replies": [ChatMessage.from_assistant(words, tool_calls=calls)]}


class Undecided(Exception):
    """A call without an answer, which ends the run of the bare agent."""


class RaisingStrategy:
    """Confirms what the job has answers for, and raises out of the run else."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def run(
        self,
        *,
        tool_name: str,
        tool_params: dict[str, Any],
        tool_call_id: str | None = None,
        confirmation_strategy_context: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Any:
        self._job.ledger.mark("asked")
        answers = (confirmation_strategy_context or {}).get("answers", {})
        given = answers.get(str(tool_params.get("to", ""))) or answers.get("*")
        if given is None:
            raise Undecided(tool_name)
        if isinstance(given, str):
            return given
        return ToolExecutionDecision(
            given.get("tool", tool_name),
            given["verdict"] != "reject",
            tool_call_id,
            given.get("reason"),
            given.get("args") or tool_params,
        )


class Driver(StoredDriver):
    """The agent of one job, with its messages in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self.gated)

    def start_run(self) -> None:
        message = ChatMessage.from_user(ASK)
        self._run(RunPaused(self.job.thread, [message], []))

    def repeat_run(self) -> None:
        self._run(RunPaused.from_dict(self.load()))

    def resume_bare(self) -> None:
        self._run(RunPaused.from_dict(self.load()), self.job.answers)

    def resume_gated(self, gate: Gate) -> None:
        before, seconds = RunPaused.from_dict(self.load()), self.job.wait_seconds
        self._keep(
            before,
            lambda: resume_agent(self._agent, before, gate, wait_seconds=seconds),
        )

    def approve_all(self, older: Any) -> None:
        self._run(RunPaused.from_dict(older), {"*": APPROVAL})

    def send_raw(self) -> None:
        """Behind the gate a run has no answers, so a redirection is a stored call of
        another tool, and a malformed answer a context that is none."""
        stored = RunPaused.from_dict(self.load())
        if self.gated and self.job.raw == "redirection":
            call = replace(
                stored.messages[-1].tool_calls[0],
                tool_name=ERASE["name"],
                arguments=ERASE["args"],
            )
            stored.messages[-1] = ChatMessage.from_assistant(tool_calls=[call])
        self._run(stored, {"*": RAW[self.job.raw]})

    def _run(self, stored: RunPaused, answers: Mapping[str, Any] | None = None) -> None:
        """Run from stored messages. Haystack alone begins with the model, so that the
        pending message of the model is left out."""

        def run_bare() -> Any:
            messages = [m for m in stored.messages if not is_unanswered(m, stored)]
            context = {"answers": answers or {}}
            return self._agent.run(messages=messages, hook_context=context)

        gated = self.gated is not None
        self._keep(
            stored, lambda: run_again(self._agent, stored) if gated else run_bare()
        )

    def _keep(self, before: RunPaused, run: Callable[[], Any]) -> None:
        """Run and store how the run stands; nothing if it did not go on."""
        try:
            found = run()
        except RunPaused as paused:
            self.save(paused.to_dict())
        except Undecided:
            calls = list_calls(self.job.script[0])
            pending = ChatMessage.from_assistant(WORDS, tool_calls=calls)
            begun = ChatMessage.from_user(ASK)
            self.save(RunPaused(before.thread, [begun, pending], []).to_dict())
        else:
            if found is not None:
                self.save(RunPaused(before.thread, found["messages"], []).to_dict())

    def read_report(self) -> Report:
        stored = RunPaused.from_dict(self.load())
        last = stored.messages[-1]
        return Report(
            pending=[
                Pending(str(call.id), call.tool_name, str(call.id), call.arguments)
                for call in last.tool_calls
            ],
            values=list(stored.waiting),
            replies=[
                str(result.result)
                for message in stored.messages
                for result in message.tool_call_results
            ],
            final=last.text or "",
        )


def list_calls(turn: Turn) -> list[ToolCall]:
    return [ToolCall(call["name"], call["args"], call["id"]) for call in turn]


def is_unanswered(message: ChatMessage, stored: RunPaused) -> bool:
    """Whether a message has calls and is the last one."""
    return bool(message.tool_calls) and message is stored.messages[-1]


def build_agents(job: Job, gated: GatedBox | None) -> Agent:
    """The agent; a nested one sits behind the tool `delegate`."""
    model = ScriptedModel(job.script)
    if gated is None:
        return build_bare_agent(job, model)

    describe = gated.extend(describe_call)
    agent = build_gated_agent(
        model, GateHook([*gated.tools.values()], describe=describe)
    )
    if not job.nested:
        return agent
    hook = GateHook([], agents={"delegate": agent})
    return build_gated_agent(ScriptedModel(DELEGATE), hook)


def build_gated_agent(model: ScriptedModel, hook: GateHook) -> Agent:
    """An agent with the hook at both points."""
    hooks = {"before_run": [hook], "before_tool": [hook]}
    return Agent(chat_generator=model, tools=hook.tools, hooks=hooks)


def build_bare_agent(job: Job, model: ScriptedModel) -> Agent:
    """An agent whose tools are confirmed as the documentation shows."""
    functions = build_toolbox(job).functions.values()
    tools = [create_tool_from_function(function) for function in functions]
    hook = ConfirmationHook({"*": RaisingStrategy(job)})
    agent = Agent(chat_generator=model, tools=tools, hooks={"before_tool": [hook]})
    if not job.nested:
        return agent

    def delegate(task: str) -> str:
        found = agent.run(messages=[ChatMessage.from_user(task)])
        return str(found["last_message"].text)

    schema = {"type": "object", "properties": {"task": {"type": "string"}}}
    nested = Tool("delegate", "Hand a task on.", schema, delegate)
    return Agent(chat_generator=ScriptedModel(DELEGATE), tools=[nested])
