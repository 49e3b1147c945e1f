"""An agent that speaks AG-UI, whose tool waits for people without a process that waits.

    python ag_ui_agent.py start   # proposes, and ends
    python ag_ui_agent.py resume  # after people decided

It needs `pip install "counterseal-client[ag-ui]"`. FILE keeps the messages and the open
interrupts, as an application's database would. To stay runnable without a model's key,
the model is a script: it asks for one note.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    FunctionCall,
    Interrupt,
    MessagesSnapshotEvent,
    RunAgentInput,
    RunStartedEvent,
    ToolCall,
    UserMessage,
)

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.ag_ui import (
    build_resume,
    check_resume,
    finish_run,
    perform_turn,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


def ask_model(messages: list[Any]) -> AssistantMessage:
    """The model is a script here: it asks for a note, then it says so."""
    if any(isinstance(message, AssistantMessage) for message in messages):
        return AssistantMessage(id=uuid.uuid4().hex, content="I told Ann.")
    function = FunctionCall(name="send_note", arguments=json.dumps(NOTE))
    calls = [ToolCall(id="call_1", function=function)]
    return AssistantMessage(id=uuid.uuid4().hex, tool_calls=calls)


async def run_agent(
    gate: Gate, given: RunAgentInput, kept: list[Interrupt]
) -> AsyncIterator[Any]:
    """The events of one run. `kept` are the interrupts of the run before."""

    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    ids = {"thread_id": given.thread_id, "run_id": given.run_id}
    yield RunStartedEvent(**ids, protocol_version=PROTOCOL_VERSION)
    check_resume(given, kept)
    messages = list(given.messages)
    while True:
        turn = await perform_turn([send_note], messages, thread=given.thread_id)
        for event in turn.build_events():
            yield event
        messages += turn.results
        if turn.interrupts:
            break
        messages.append(ask_model(messages))
        if not messages[-1].tool_calls:
            break
    yield MessagesSnapshotEvent(messages=messages)
    yield finish_run(given, turn.interrupts)


async def main(
    action: str, thread: str = "order_78291", file: str = "ag_ui_agent.json"
) -> None:
    stored = Path(file)
    messages: list[Any] = [UserMessage(id="m-1", content="Tell Ann.")]
    kept: list[Interrupt] = []
    with Gate() as gate:
        resume = None
        if action == "resume":
            found = json.loads(stored.read_text())
            snapshot = MessagesSnapshotEvent.model_validate(found["snapshot"])
            messages = list(snapshot.messages)
            kept = [Interrupt.model_validate(one) for one in found["interrupts"]]
            resume = build_resume(kept, gate, wait_seconds=30)
            if resume is None:
                sys.exit("Nobody has decided yet.")
        given = RunAgentInput(
            thread_id=thread,
            run_id=uuid.uuid4().hex,
            protocol_version=PROTOCOL_VERSION,
            messages=messages,
            resume=resume,
        )
        events = [event async for event in run_agent(gate, given, kept)]
    outcome = events[-1].outcome
    interrupts = getattr(outcome, "interrupts", [])
    for interrupt in interrupts:
        sys.stdout.write(f"{interrupt.message}\n")
    if not interrupts:
        sys.stdout.write(f"{events[-2].messages[-1].content}\n")
    snapshot = events[-2].model_dump(mode="json", by_alias=True)
    open_ones = [one.model_dump(mode="json", by_alias=True) for one in interrupts]
    stored.write_text(json.dumps({"snapshot": snapshot, "interrupts": open_ones}))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
