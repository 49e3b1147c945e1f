"""Haystack: an agent with a hook before its tools, bare with a ConfirmationHook whose
strategy raises out of the run, or through Counterseal's adapter."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
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
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import DELEGATE, GatedBox, StoredDriver, build_toolbox, run_action


@component
class ScriptedModel:
    """Says the next turn of its script; which one that is, the history tells."""

    def __init__(self, script: Script) -> None:
        self._script = script

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        """A turn may stand in several messages."""
        said = {call.id for m in messages for call in m.tool_calls}
        turns = [turn for turn in self._script if turn[0]["id"] not in said]
        calls = [ToolCall(c["name"], c["args"], c["id"]) for c in (turns or [[]])[0]]
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


class HaystackDriver(StoredDriver):
    """The agent of one job, with its messages in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self._gated)

    def start_run(self) -> None:
        message = ChatMessage.from_user("Please do it.")
        self._run(RunPaused(self._job.thread, [message], []))

    def repeat_run(self) -> None:
        self._run(self._load())

    def resume_run(self) -> None:
        before = self._load()
        if self._gated is None:
            self._run(before, self._job.answers)
        else:
            self._resume(before, self._gated)
        if self._job.hostile:
            self._replay(before)

    def _resume(self, before: RunPaused, gated: GatedBox) -> None:
        try:
            found = resume_agent(
                self._agent, before, gated.gate, wait_seconds=self._job.wait_seconds
            )
        except RunPaused as paused:
            self._keep(paused)
        else:
            if found is not None:
                self._keep(RunPaused(before.thread, found["messages"], []))

    def _replay(self, before: RunPaused) -> None:
        """Hostile: run an older copy of the messages, with an approval of all."""
        kept = self._store.load_state()
        self._run(before, {"*": {"verdict": "approve"}})
        self._store.save_state(kept)

    def send_raw(self) -> None:
        """Behind the gate a run has no answers, so a redirection is a
        stored call of another tool, and a malformed answer a context that is none."""
        raw: dict[str, Any] = {
            "approval": {"verdict": "approve"},
            "redirection": {
                "verdict": "modify",
                "tool": "erase_note",
                "args": {"to": "ann"},
            },
            "malformed": "yes, please",
        }
        stored = self._load()
        if self._gated and self._job.raw == "redirection":
            call = replace(
                stored.messages[-1].tool_calls[0],
                tool_name="erase_note",
                arguments={"to": "ann"},
            )
            stored.messages[-1] = ChatMessage.from_assistant(tool_calls=[call])
        self._run(stored, {"*": raw[self._job.raw]})

    def _run(self, stored: RunPaused, answers: Mapping[str, Any] | None = None) -> None:
        """Run from stored messages. Haystack alone begins with the model, so that the
        pending message of the model is left out."""
        try:
            if self._gated:
                found = run_again(self._agent, stored)
            else:
                messages = [m for m in stored.messages if not is_unanswered(m, stored)]
                context = {"answers": answers or {}}
                found = self._agent.run(messages=messages, hook_context=context)
        except RunPaused as paused:
            self._keep(paused)
        except Undecided:
            script = self._job.script
            calls = [ToolCall(c["name"], c["args"], c["id"]) for c in script[0]]
            pending = ChatMessage.from_assistant(WORDS, tool_calls=calls)
            begun = ChatMessage.from_user("Please do it.")
            self._keep(RunPaused(stored.thread, [begun, pending], []))
        else:
            self._keep(RunPaused(stored.thread, found["messages"], []))

    def _keep(self, paused: RunPaused) -> None:
        self._store.save_state(json.dumps(paused.to_dict()))

    def _load(self) -> RunPaused:
        return RunPaused.from_dict(json.loads(self._store.load_state()))

    def read_report(self) -> Report:
        stored = self._load()
        last = stored.messages[-1]
        return Report(
            "suspended" if last.tool_calls else "finished",
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
            final="" if last.tool_calls else last.text or "",
        )


def is_unanswered(message: ChatMessage, stored: RunPaused) -> bool:
    """Whether a message has calls and is the last one."""
    return bool(message.tool_calls) and message is stored.messages[-1]


def build_agents(job: Job, gated: GatedBox | None) -> Agent:
    """The agent; a nested one sits behind the tool `delegate`."""
    model = ScriptedModel(job.script)
    if gated is None:
        return build_bare_agent(job, model)

    def describe(message: ChatMessage, call_id: str) -> Details:
        return gated.add_details(describe_call(message, call_id))

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
    box = build_toolbox(job)
    tools = [create_tool_from_function(getattr(box, name)) for name in TOOL_NAMES]
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


class HaystackAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(HaystackDriver(job), job)


def build_agent(variant: str) -> HaystackAgent:
    """The agent; there is one variant."""
    return HaystackAgent()
