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
from counterseal_client.gate import Gate

from ..scripting import DONE, TOOL_NAMES, WORDS, Script, Turn, find_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, PausedDriver, Step
from .toolbox import DELEGATE, GatedBox, build_toolbox

FINAL = {"id": "last_1", "name": "final_answer", "args": {"answer": DONE}}


class ScriptedModel(Model):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self._script = script

    def generate(self, messages: list[ChatMessage], **_: Any) -> ChatMessage:
        called = [m.content for m in messages if m.role == MessageRole.TOOL_CALL]
        words = " ".join(map(str, called))
        known = [
            turn[0]["id"] for turn in self._script if f"'{turn[0]['id']}'" in words
        ]
        return build_message(find_turn(self._script, known) or [FINAL])


def build_message(calls: Turn) -> ChatMessage:
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


class Driver(PausedDriver):
    """The agent of one job, with its paused run in a file. smolagents alone has
    nothing to resume."""

    calls_in = "message"

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._agent = build_agents(job, self.gated)

    def start_run(self) -> None:
        self._keep(lambda: self._agent.run(ASK))

    def repeat_run(self) -> Step:
        if self.gated:
            return super().repeat_run()
        self.start_run()
        return None

    def resume_bare(self) -> None:
        return None

    def resume_gated(self, gate: Gate) -> None:
        paused = RunPaused.from_dict(self.load()["paused"])
        seconds = self.job.wait_seconds
        self._keep(
            lambda: resume_agent(self._agent, paused, gate, wait_seconds=seconds)
        )

    def send_raw(self) -> Step:
        return super().send_raw() if self.gated else None

    def build_redirection(self) -> Any:
        return json.loads(build_message([ERASE]).model_dump_json())

    def go_on(self, stored: Mapping[str, Any]) -> None:
        paused = RunPaused.from_dict(stored["paused"])
        self._keep(lambda: continue_run(self._agent, paused))

    def _keep(self, run: Callable[[], Any]) -> None:
        """Run and store how the run stands; nothing if it did not go on."""
        try:
            answer = run()
        except RunPaused as paused:
            self.save({"paused": paused.to_dict(), "steps": paused.steps})
        else:
            if answer is not None:
                steps = [dump_step(step) for step in self._agent.memory.steps]
                self.save({"paused": None, "steps": steps, "final": str(answer)})

    def read_report(self) -> Report:
        kept = self.load()
        paused = kept["paused"] or {"message": {"tool_calls": []}, "waiting": []}
        return Report(
            pending=[
                Pending(
                    call["id"],
                    call["function"]["name"],
                    call["id"],
                    call["function"]["arguments"],
                )
                for call in paused["message"]["tool_calls"]
            ],
            values=paused["waiting"],
            replies=[
                str(step.get("observations") or step.get("error"))
                for step in kept["steps"]
                if "task" not in step
            ],
            final=kept.get("final", ""),
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

    inner = GateAgent(
        list(gated.tools.values()),
        thread=job.thread,
        describe=gated.extend(describe_call),
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
