"""smolagents: a tool calling agent, bare or through Counterseal's adapter. smolagents
alone has no approval, so that the bare one runs each call at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from smolagents import LogLevel, Model, ToolCallingAgent, tool
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)

from counterseal_client.adapters.smolagents import (
    GateAgent,
    NestedAgent,
    RunPaused,
    continue_run,
    describe_call,
    dump_step,
    resume_agent,
)
from counterseal_client.operations import Details

from ..scripting import DONE, TOOL_NAMES, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import DELEGATE, GatedBox, StoredDriver, build_toolbox, run_action

FINAL = {"id": "last_1", "name": "final_answer", "args": {"answer": DONE}}


class ScriptedModel(Model):
    """Says the next turn of its script; which one that is, the history tells."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        said = " ".join(
            str(message.content)
            for message in messages
            if message.role == MessageRole.TOOL_CALL
        )
        turns = [turn for turn in self._script if f"'{turn[0]['id']}'" not in said]
        return build_message((turns or [[FINAL]])[0])


def build_message(calls: list[dict[str, Any]]) -> ChatMessage:
    """The model's message with these calls."""
    return ChatMessage(
        role=MessageRole.ASSISTANT,
        content=WORDS,
        tool_calls=[
            ChatMessageToolCall(
                function=ChatMessageToolCallFunction(
                    name=call["name"], arguments=call["args"]
                ),
                id=call["id"],
                type="function",
            )
            for call in calls
        ],
    )


class SmolagentsDriver(StoredDriver):
    """The agent of one job, with its paused run in a file."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self._gated)

    def start_run(self) -> None:
        self._keep(lambda: self._agent.run("Please do it."))
        kept = self._load()
        self._store.save_state(json.dumps({**kept, "first": kept}))

    def repeat_run(self) -> None:
        if self._gated:
            self._continue(self._load())
        else:
            self.start_run()

    def resume_run(self) -> None:
        """smolagents alone has nothing to resume."""
        before = self._load()
        if self._gated is None:
            return
        gate, seconds = self._gated.gate, self._job.wait_seconds
        paused = RunPaused.from_dict(before["paused"])
        self._keep(
            lambda: resume_agent(self._agent, paused, gate, wait_seconds=seconds)
        )
        if self._job.hostile:
            self._replay(before)

    def _continue(self, kept: Mapping[str, Any]) -> None:
        paused = RunPaused.from_dict(kept["paused"])
        self._keep(lambda: continue_run(self._agent, paused))

    def _replay(self, before: Mapping[str, Any]) -> None:
        """Hostile: go on from an older state, as if all was approved."""
        kept = self._store.load_state()
        self._continue(before)
        self._store.save_state(kept)

    def send_raw(self) -> None:
        """A run has no answers, so a redirection is a stored message of
        the model with another call, and a malformed answer one that is none."""
        kept = self._load()
        if self._gated is None:
            return
        if self._job.interrupt_ids:
            self._replay(kept["first"])
            return
        if self._job.raw == "redirection":
            erase = {"id": "call_1", "name": "erase_note", "args": {"to": "ann"}}
            message = json.loads(build_message([erase]).model_dump_json())
            kept["paused"]["message"] = message
        if self._job.raw == "malformed":
            kept["paused"]["message"] = "yes, please"
        self._continue(kept)

    def _keep(self, run: Callable[[], Any]) -> None:
        """Run and store how the run stands; nothing if it did not go on."""
        try:
            answer = run()
        except RunPaused as paused:
            kept: dict[str, Any] = {"paused": paused.to_dict(), "steps": paused.steps}
        else:
            if answer is None:
                return
            steps = [dump_step(step) for step in self._agent.memory.steps]
            kept = {"paused": None, "steps": steps, "final": str(answer)}
        text = self._store.load_state()
        before = json.loads(text) if text else {}
        self._store.save_state(json.dumps({**before, **kept}))

    def _load(self) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(self._store.load_state())
        return kept

    def read_report(self) -> Report:
        kept = self._load()
        paused = kept["paused"]
        calls = paused["message"]["tool_calls"] if paused else []
        return Report(
            "suspended" if paused else "finished",
            pending=[
                Pending(
                    call["id"],
                    call["function"]["name"],
                    call["id"],
                    call["function"]["arguments"],
                )
                for call in calls
            ],
            values=paused["waiting"] if paused else [],
            replies=[
                str(step.get("observations") or step.get("error"))
                for step in kept["steps"]
                if "task" not in step
            ],
            final="" if paused else kept["final"],
        )


def build_agents(job: Job, gated: GatedBox | None) -> Any:
    """The agent; a nested one sits behind the tool `delegate`."""
    quiet = {"verbosity_level": LogLevel.OFF}
    if gated is None:
        tools = build_bare_tools(job)
        agent = ToolCallingAgent(
            tools=tools,
            model=ScriptedModel(job.script),
            name="delegate",
            description="Hand a task to another agent.",
            **quiet,
        )
        if not job.nested:
            return agent
        model = ScriptedModel(DELEGATE)
        return ToolCallingAgent(tools=[], model=model, managed_agents=[agent], **quiet)

    def describe(message: ChatMessage, call_id: str) -> Details:
        return gated.add_details(describe_call(message, call_id))

    inner = GateAgent(
        list(gated.tools.values()),
        thread=job.thread,
        describe=describe,
        model=ScriptedModel(job.script),
        **quiet,
    )
    if not job.nested:
        return inner
    agents = {"delegate": NestedAgent(inner)}
    model = ScriptedModel(DELEGATE)
    return GateAgent([], thread=job.thread, agents=agents, model=model, **quiet)


def build_bare_tools(job: Job) -> list[Any]:
    box = build_toolbox(job)

    @tool
    def send_note(to: str, text: str) -> Any:
        """Send a note to a person.

        Args:
            to: The person.
            text: The note.
        """
        return box.send_note(to, text)

    @tool
    def order_parts(part: str, count: int, due: str) -> Any:
        """Order a number of parts by a date.

        Args:
            part: The part.
            count: How many.
            due: The date.
        """
        return box.order_parts(part, count, due)  # type: ignore[arg-type]

    @tool
    def erase_note(to: str) -> Any:
        """Erase the notes to a person.

        Args:
            to: The person.
        """
        return box.erase_note(to)

    tools = [send_note, order_parts, erase_note]
    assert [one.name for one in tools] == list(TOOL_NAMES)
    return tools


class SmolagentsAgent:
    """The agent, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(SmolagentsDriver(job), job)


def build_agent(variant: str) -> SmolagentsAgent:
    """The agent; there is one variant."""
    return SmolagentsAgent()
