"""AG-UI: an agent that speaks the protocol and its client, which keeps the messages.
Bare, the agent asks for each call as the specification shows; or through Counterseal's
adapter."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    Event,
    FunctionCall,
    Interrupt,
    MessagesSnapshotEvent,
    ResumeEntry,
    RunAgentInput,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter, validate_call

from counterseal_client.adapters.ag_ui import (
    build_resume,
    check_resume,
    describe_call,
    find_open_calls,
    finish_run,
    perform_turn,
    withdraw_cancelled,
)
from counterseal_client.operations import Details

from ..scripting import DONE, WORDS, Script
from ..worker import Job, Pending, Report
from .toolbox import (
    DELEGATE,
    GatedBox,
    StoredDriver,
    build_toolbox,
    find_answer,
    run_action,
)

EVENTS: TypeAdapter[Any] = TypeAdapter(Event)
INPUTS = TypeAdapter(RunAgentInput)
QUESTION: dict[str, Any] = {
    "type": "object",
    "required": ["approved"],
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object"},
        "reason": {"type": "string"},
    },
}


class ScriptedProducer:
    """The agent. `kept` is what it keeps between runs: its open interrupts, and the
    messages of the nested agent."""

    def __init__(
        self, job: Job, gated: GatedBox | None, kept: dict[str, list[Any]]
    ) -> None:
        self._job = job
        self._gated = gated
        self.kept = kept

    async def run(self, given: RunAgentInput) -> AsyncIterator[Any]:
        yield RunStartedEvent(
            thread_id=given.thread_id,
            run_id=given.run_id,
            protocol_version=PROTOCOL_VERSION,
        )
        messages = list(given.messages)
        script = DELEGATE if self._job.nested else self._job.script
        try:
            check_resume(given, self.kept["interrupts"])
            if self._gated:
                tools = self._gated.tools.values()
                await withdraw_cancelled(tools, given, self.kept["interrupts"])
            interrupts = await self._think(given, messages, script)
        except Exception as error:
            yield RunErrorEvent(message=f"{type(error).__name__}: {error}")
            return
        self.kept["interrupts"] = interrupts
        yield MessagesSnapshotEvent(messages=messages)
        yield finish_run(given, interrupts)

    async def _think(
        self,
        given: RunAgentInput,
        messages: list[Any],
        script: Script,
        subagent: str | None = None,
    ) -> list[Interrupt]:
        """Go on until calls wait or the script ends; the interrupts of what waits."""
        while True:
            interrupts = await self._perform_calls(given, messages, subagent)
            if interrupts:
                return interrupts
            turns = [m for m in messages if isinstance(m, AssistantMessage)]
            calls = script[len(turns)] if len(turns) < len(script) else []
            messages.append(build_message(calls))
            if not calls:
                return []

    async def _perform_calls(
        self, given: RunAgentInput, messages: list[Any], subagent: str | None
    ) -> list[Interrupt]:
        _, calls = find_open_calls(messages)
        for call in calls:
            if call.function.name == "delegate":
                inner = self.kept["inner"]
                waiting = await self._think(given, inner, self._job.script, "inner")
                if waiting:
                    return waiting
                messages.append(build_result(call.id, DONE))
        if self._gated is None:
            return self._ask_people(given, messages, subagent)
        turn = await perform_turn(
            self._gated.tools.values(),
            messages,
            thread=given.thread_id,
            describe=self._describe,
            subagent_run_id=subagent,
        )
        messages += turn.results
        return turn.interrupts

    def _describe(self, message: AssistantMessage, call_id: str) -> Details:
        assert self._gated is not None
        return self._gated.add_details(describe_call(message, call_id))

    def _ask_people(
        self, given: RunAgentInput, messages: list[Any], subagent: str | None
    ) -> list[Interrupt]:
        """Bare: one interrupt for each call, and its answer decides."""
        answers = {entry.interrupt_id: entry for entry in given.resume or []}
        by_call = {
            interrupt.tool_call_id: answers[interrupt.id]
            for interrupt in self.kept["interrupts"]
            if interrupt.id in answers
        }
        _, calls = find_open_calls(messages)
        calls = [call for call in calls if call.function.name != "delegate"]
        if any(call.id not in by_call for call in calls):
            return [self._build_question(call, subagent) for call in calls]
        box = build_toolbox(self._job)
        for call in calls:
            payload = by_call[call.id].payload
            if not isinstance(payload, dict) or payload.get("approved") not in (
                True,
                False,
            ):
                raise ValueError("The answer does not fit the response schema.")
            if not payload["approved"]:
                text = f"Rejected: {payload.get('reason', '')}"
            else:
                args = payload.get("editedArgs") or json.loads(call.function.arguments)
                function = validate_call(getattr(box, call.function.name))
                text = str(function(**args))
            messages.append(build_result(call.id, text))
        return []

    def _build_question(self, call: ToolCall, subagent: str | None) -> Interrupt:
        self._job.ledger.mark("asked")
        return Interrupt(
            id=uuid.uuid4().hex,
            reason="tool_call",
            tool_call_id=call.id,
            response_schema=QUESTION,
            subagent_run_id=subagent,
            metadata={"tool": call.function.name, "args": call.function.arguments},
        )


def build_message(calls: list[dict[str, Any]]) -> AssistantMessage:
    """What the model says, with these calls."""
    return AssistantMessage(
        id=uuid.uuid4().hex,
        content=WORDS if calls else DONE,
        tool_calls=[
            ToolCall(
                id=call["id"],
                function=FunctionCall(
                    name=call["name"], arguments=json.dumps(call["args"])
                ),
            )
            for call in calls
        ]
        or None,
    )


def build_result(call_id: str, text: str) -> ToolMessage:
    return ToolMessage(id=uuid.uuid4().hex, tool_call_id=call_id, content=text)


class AgUiDriver(StoredDriver):
    """The client: it keeps the messages, sends answers, and reads events."""

    def start_run(self) -> None:
        self._kept = self._build_empty()
        self._send_input(None)

    def repeat_run(self) -> None:
        """This is a crash before the run was stored."""
        self.start_run()

    def _build_empty(self) -> dict[str, Any]:
        first = UserMessage(id="m-1", content="Please do it.")
        empty: dict[str, list[Any]] = {"interrupts": [], "inner": []}
        return {"messages": [first], "agent": empty, "error": ""}

    def resume_run(self) -> None:
        self._load()
        before = list(self._kept["messages"])
        interrupts = self._kept["agent"]["interrupts"]
        resume: list[ResumeEntry] | None
        if self._gated:
            gate, seconds = self._gated.gate, self._job.wait_seconds
            resume = build_resume(interrupts, gate, seconds)
        else:
            resume = [self._answer(interrupt) for interrupt in interrupts]
        if resume:
            self._send_input(resume)
        if self._job.hostile:
            self._replay(before, interrupts)

    def _answer(self, interrupt: Interrupt) -> ResumeEntry:
        facts = interrupt.metadata or {}
        given = find_answer(self._job, json.loads(facts["args"]))
        payload = {"approved": given["verdict"] != "reject", **given}
        if "args" in given:
            payload["editedArgs"] = given["args"]
        return ResumeEntry(
            interrupt_id=interrupt.id, status="resolved", payload=payload
        )

    def _replay(self, before: list[Any], interrupts: list[Interrupt]) -> None:
        """Hostile: send the older messages once more, with everything approved."""
        kept = self._kept
        agent = {**kept["agent"], "interrupts": interrupts}
        self._kept = {**kept, "messages": before, "agent": agent}
        self._send_input(build_approvals([one.id for one in interrupts]), keep=False)
        self._kept = kept

    def send_raw(self) -> None:
        self._load()
        ids = [one.id for one in self._kept["agent"]["interrupts"]]
        entries = build_approvals(self._job.interrupt_ids or ids)
        payloads: dict[str, Any] = {
            "redirection": {
                "approved": True,
                "toolName": "erase_note",
                "editedArgs": {"to": "ann"},
            },
            "malformed": "yes, please",
        }
        for entry in entries:
            entry.payload = payloads.get(self._job.raw, entry.payload)
        self._send_input(entries)

    def _send_input(
        self, resume: list[ResumeEntry] | None, *, keep: bool = True
    ) -> None:
        given = RunAgentInput(
            thread_id=self._job.thread,
            run_id=uuid.uuid4().hex,
            protocol_version=PROTOCOL_VERSION,
            messages=self._kept["messages"],
            resume=resume,
        )
        wire = INPUTS.dump_json(given, by_alias=True)
        producer = ScriptedProducer(self._job, self._gated, self._kept["agent"])
        events = asyncio.run(read_events(producer, INPUTS.validate_json(wire)))
        for event in events:
            if isinstance(event, RunErrorEvent):
                self._kept["error"] = event.message
            if isinstance(event, MessagesSnapshotEvent):
                self._kept["messages"] = event.messages
        if isinstance(events[-1], RunFinishedEvent):
            self._kept["error"] = ""
        if keep:
            self._save()

    def _save(self) -> None:
        kept = self._kept
        state = {
            "messages": [dump_model(message) for message in kept["messages"]],
            "inner": [dump_model(message) for message in kept["agent"]["inner"]],
            "interrupts": [dump_model(one) for one in kept["agent"]["interrupts"]],
            "error": kept["error"],
        }
        self._store.save_state(json.dumps(state))

    def _load(self) -> None:
        state = json.loads(self._store.load_state())
        interrupts = [Interrupt.model_validate(one) for one in state["interrupts"]]
        agent = {"interrupts": interrupts, "inner": parse_messages(state["inner"])}
        messages = parse_messages(state["messages"])
        self._kept = {"messages": messages, "agent": agent, "error": state["error"]}

    def read_report(self) -> Report:
        self._load()
        messages, agent = self._kept["messages"], self._kept["agent"]
        interrupts: list[Interrupt] = agent["interrupts"]
        replies = [
            str(message.content)
            for message in [*messages, *agent["inner"]]
            if isinstance(message, ToolMessage)
        ]
        done = not interrupts and not self._kept["error"]
        state = "suspended" if interrupts else "finished" if done else "failed"
        return Report(
            state,
            pending=[build_pending(one) for one in interrupts],
            values=[one.metadata for one in interrupts],
            replies=replies,
            final=str(messages[-1].content) if done else "",
            error=self._kept["error"],
        )


async def read_events(producer: ScriptedProducer, given: RunAgentInput) -> list[Any]:
    """The events of a run, as a client reads them from the stream."""
    encoder = EventEncoder()
    lines = [encoder.encode(event) async for event in producer.run(given)]
    return [EVENTS.validate_json(line.removeprefix("data: ")) for line in lines]


def build_approvals(ids: list[str]) -> list[ResumeEntry]:
    """Answers that approve everything."""
    return [
        ResumeEntry(interrupt_id=key, status="resolved", payload={"approved": True})
        for key in ids
    ]


def build_pending(interrupt: Interrupt) -> Pending:
    """A call that waits."""
    facts = interrupt.metadata or {}
    args = json.loads(facts.get("args", "{}"))
    call_id = interrupt.tool_call_id or ""
    return Pending(interrupt.id, str(facts["tool"]), call_id, args)


def dump_model(found: Any) -> dict[str, Any]:
    """A message or an interrupt as plain data."""
    data: dict[str, Any] = found.model_dump(mode="json", by_alias=True)
    return data


def parse_messages(found: list[dict[str, Any]]) -> list[Any]:
    """Messages from plain data."""
    event = MessagesSnapshotEvent.model_validate({"messages": found})
    return list(event.messages)


class AgUiAgent:
    """The agent and its client, bare and with Counterseal."""

    def run(self, job: Job) -> Report:
        return run_action(AgUiDriver(job), job)


def build_agent(variant: str) -> AgUiAgent:
    """The agent; there is one variant."""
    return AgUiAgent()
