"""A LlamaIndex workflow whose tool waits for people without a process that waits.

    python llama_index_workflow.py start   # proposes, and ends
    python llama_index_workflow.py resume  # after people decided

It needs `pip install "counterseal-client[llama-index]"`. To stay runnable without a
model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.llama_index import (
    perform_tool,
    resume_workflow,
    run_workflow,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


class CallEvent(Event):
    """A call of the model."""

    call_id: str
    args: dict[str, str]


class NoteWorkflow(Workflow):
    def __init__(self, gate: Gate) -> None:
        super().__init__(timeout=None)

        @gate.tool
        def send_note(to: str, text: str) -> dict[str, str]:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return {"sent": to}

        self._tool = send_note

    @step
    async def think(self, ev: StartEvent) -> CallEvent:
        """Stands for a model: it asks for a note."""
        return CallEvent(call_id="call_1", args=NOTE)

    @step
    async def act(self, ctx: Context, ev: CallEvent) -> StopEvent:
        """Runs again from its top when it is resumed."""
        text = await perform_tool(ctx, self._tool, ev.args, call_id=ev.call_id)
        return StopEvent(result=f"I told Ann: {text}")


async def main(
    action: str, thread: str = "order_78291", file: str = "llama_index_workflow.json"
) -> None:
    with Gate() as gate:
        workflow = NoteWorkflow(gate)
        if action == "start":
            run = await run_workflow(workflow, thread=thread)
        else:
            context = json.loads(Path(file).read_text())
            resumed = await resume_workflow(workflow, context, gate, wait_seconds=30)
            if resumed is None:
                sys.exit("Nobody has decided yet.")
            run = resumed
    Path(file).write_text(json.dumps(run.context))
    for waiting in run.waiting:
        sys.stdout.write(f"Waits for people: {waiting['url']}\n")
    if not run.waiting:
        sys.stdout.write(f"{run.result}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
