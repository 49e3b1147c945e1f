"""AG-UI: an agent that speaks the protocol and its client, which keeps the messages.
Bare, the agent asks for each call as the specification shows; or through Counterseal's
adapter."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
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
from pydantic import TypeAdapter

from counterseal_client.adapters.ag_ui import (
    build_resume,
    check_resume,
    describe_call,
    find_open_calls,
    finish_run,
    perform_turn,
    withdraw_cancelled,
)
from counterseal_client.gate import Gate

from ..scripting import DONE, WORDS, Script, Turn, get_turn
from ..worker import Job, Pending, Report
from .driver import ASK, ERASE, MALFORMED, Step, StoredDriver
from .toolbox import DELEGATE, GatedBox, build_toolbox

EVENTS: TypeAdapter[Any] = TypeAdapter(Event)
INPUTS = TypeAdapter(RunAgentInput)
APPROVED = {"approved": True}
QUESTION: dict[str, Any] = {
    "type": "object",
    "required": ["approved"],
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object"},
        "reason": {"type": "string"},
    },
}


@dataclass
class Stand:
    """What the client and the agent keep of a run: its messages, and the open
    interrupts and the messages of the nested agent."""

    messages: list[Any]
    interrupts: list[Interrupt]
    inner: list[Any]
    error: str = ""

    @classmethod
    def parse(cls, stored: Any) -> Stand:
        lists = [
            list(MessagesSnapshotEvent.model_validate({"messages": found}).messages)
            for found in (stored["messages"], stored["inner"])
        ]
        interrupts = [Interrupt.model_validate(one) for one in stored["interrupts"]]
        return cls(lists[0], interrupts, lists[1], stored["error"])

    def dump(self) -> dict[str, Any]:
        parts = {
            "messages": self.messages,
            "interrupts": self.interrupts,
            "inner": self.inner,
        }
        return {
            "error": self.error,
            **{
                name: [one.model_dump(mode="json", by_alias=True) for one in found]
                for name, found in parts.items()
            },
        }


class ScriptedProducer:
    """The agent. It keeps its open interrupts and the messages of the nested agent
    between runs."""

    def __init__(self, job: Job, gated: GatedBox | None, kept: Stand) -> None:
        self._job = job
        self._gated = gated
        self._kept = kept

    async def run(self, given: RunAgentInput) -> AsyncIterator[Any]:
        yield RunStartedEvent(
            thread_id=given.thread_id,
            run_id=given.run_id,
            protocol_version=PROTOCOL_VERSION,
        )
        messages = list(given.messages)
        script = DELEGATE if self._job.nested else self._job.script
        try:
            check_resume(given, self._kept.interrupts)
            if self._gated:
                tools = self._gated.tools.values()
                await withdraw_cancelled(tools, given, self._kept.interrupts)
            interrupts = await self._think(given, messages, script)
        except Exception as error:
            yield RunErrorEvent(message=f"{type(error).__name__}: {error}")
            return
        self._kept.interrupts = interrupts
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
            calls = get_turn(script, len(turns))
            messages.append(build_message(calls))
            if not calls:
                return []

    async def _perform_calls(
        self, given: RunAgentInput, messages: list[Any], subagent: str | None
    ) -> list[Interrupt]:
        _, calls = find_open_calls(messages)
        for call in calls:
            if call.function.name == "delegate":
                inner = self._kept.inner
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
            describe=self._gated.extend(describe_call),
            subagent_run_id=subagent,
        )
        messages += turn.results
        return turn.interrupts

    def _ask_people(
        self, given: RunAgentInput, messages: list[Any], subagent: str | None
    ) -> list[Interrupt]:
        """Bare: one interrupt for each call, and its answer decides."""
        answers = {entry.interrupt_id: entry for entry in given.resume or []}
        by_call = {
            interrupt.tool_call_id: answers[interrupt.id]
            for interrupt in self._kept.interrupts
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
                text = box.run(call.function.name, args)
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


def build_message(calls: Turn) -> AssistantMessage:
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


class Driver(StoredDriver):
    """The client: it keeps the messages, sends answers, and reads events."""

    def start_run(self) -> Step:
        first = UserMessage(id="m-1", content=ASK)
        return self._send_input(Stand([first], [], []), None)

    def resume_gated(self, gate: Gate) -> Step:
        stand, seconds = Stand.parse(self.load()), self.job.wait_seconds
        resume = build_resume(stand.interrupts, gate, seconds)
        return self._send_input(stand, resume) if resume else None

    def resume_bare(self) -> Step:
        stand = Stand.parse(self.load())
        resume = [self._answer(interrupt) for interrupt in stand.interrupts]
        return self._send_input(stand, resume) if resume else None

    def _answer(self, interrupt: Interrupt) -> ResumeEntry:
        facts = interrupt.metadata or {}
        given = self.job.find_answer(json.loads(facts["args"]))
        payload = {"approved": given["verdict"] != "reject", **given}
        if "args" in given:
            payload["editedArgs"] = given["args"]
        return build_entry(interrupt.id, payload)

    def approve_all(self, older: Any) -> Step:
        """The older messages once more, to the agent as it is now."""
        stand, now = Stand.parse(older), Stand.parse(self.load())
        return self._send_everywhere(replace(stand, inner=now.inner), APPROVED)

    def send_raw(self) -> Step:
        payloads: dict[str, Any] = {
            "approval": APPROVED,
            "redirection": {
                **APPROVED,
                "toolName": ERASE["name"],
                "editedArgs": ERASE["args"],
            },
            "malformed": MALFORMED,
        }
        stand, ids = Stand.parse(self.load()), self.job.interrupt_ids
        return self._send_everywhere(stand, payloads[self.job.raw], ids)

    def _send_everywhere(
        self, stand: Stand, payload: Any, ids: Sequence[str] = ()
    ) -> Step:
        """Send one answer to these interrupts, or to all."""
        ids = ids or [interrupt.id for interrupt in stand.interrupts]
        return self._send_input(stand, [build_entry(key, payload) for key in ids])

    async def _send_input(self, stand: Stand, resume: list[ResumeEntry] | None) -> None:
        given = RunAgentInput(
            thread_id=self.job.thread,
            run_id=uuid.uuid4().hex,
            protocol_version=PROTOCOL_VERSION,
            messages=stand.messages,
            resume=resume,
        )
        wire = INPUTS.dump_json(given, by_alias=True)
        producer = ScriptedProducer(self.job, self.gated, stand)
        events = await read_events(producer, INPUTS.validate_json(wire))
        for event in events:
            if isinstance(event, RunErrorEvent):
                stand.error = event.message
            if isinstance(event, MessagesSnapshotEvent):
                stand.messages = list(event.messages)
        if isinstance(events[-1], RunFinishedEvent):
            stand.error = ""
        self.save(stand.dump())

    def read_report(self) -> Report:
        stand = Stand.parse(self.load())
        done = not stand.interrupts and not stand.error
        return Report(
            "failed" if stand.error and not stand.interrupts else "",
            pending=[build_pending(one) for one in stand.interrupts],
            values=[one.metadata for one in stand.interrupts],
            replies=[
                str(message.content)
                for message in [*stand.messages, *stand.inner]
                if isinstance(message, ToolMessage)
            ],
            final=str(stand.messages[-1].content) if done else "",
            error=stand.error,
        )


async def read_events(producer: ScriptedProducer, given: RunAgentInput) -> list[Any]:
    """The events of a run, as a client reads them from the stream."""
    encoder = EventEncoder()
    lines = [encoder.encode(event) async for event in producer.run(given)]
    return [EVENTS.validate_json(line.removeprefix("data: ")) for line in lines]


def build_entry(interrupt_id: str, payload: Any) -> ResumeEntry:
    return ResumeEntry(interrupt_id=interrupt_id, status="resolved", payload=payload)


def build_pending(interrupt: Interrupt) -> Pending:
    facts = interrupt.metadata or {}
    args = json.loads(facts.get("args", "{}"))
    call_id = interrupt.tool_call_id or ""
    return Pending(interrupt.id, str(facts["tool"]), call_id, args)
