"""A Temporal workflow whose tool waits for people without a process that waits.

    python temporal_workflow.py serve   # a worker: runs what can go on
    python temporal_workflow.py start   # proposes, and ends
    python temporal_workflow.py resume  # after people decided

It needs `pip install "counterseal-client[temporal]"` and a Temporal server
(TEMPORAL_ADDRESS). A worker must run for the other two, and may be restarted at any
time. To stay runnable without a model's key, the model is a script: it asks for one
note."""

from __future__ import annotations

import asyncio
import os
import sys

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from counterseal_client import Gate, get_claim
    from counterseal_client.adapters.temporal import (
        GateCalls,
        build_activity,
        resume_workflow,
    )

SERVER = os.environ.get("TEMPORAL_ADDRESS", "127.0.0.1:7233")
NOTE = {"to": "ann", "text": "Your parcel is on its way."}
QUEUE = "notes"


@workflow.defn
class NoteWorkflow:
    def __init__(self) -> None:
        self._calls = GateCalls()

    @workflow.run
    async def run(self) -> str:
        text = await self._calls.perform_tool("send_note", NOTE, call_id="call_1")
        return f"I told Ann: {text}"


async def run_worker(client: Client, gate: Gate) -> None:
    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    activities = [build_activity(send_note)]
    workflows = [NoteWorkflow]
    await Worker(
        client, task_queue=QUEUE, workflows=workflows, activities=activities
    ).run()


async def main(action: str, thread: str = "order_78291") -> None:
    client = await Client.connect(SERVER)
    with Gate() as gate:
        if action == "serve":
            await run_worker(client, gate)
        elif action == "start":
            run = NoteWorkflow.run
            await client.start_workflow(run, id=thread, task_queue=QUEUE)
        elif await resume_workflow(client, thread, gate, wait_seconds=30):
            handle = client.get_workflow_handle_for(NoteWorkflow.run, thread)
            sys.stdout.write(f"{await handle.result()}\n")
        else:
            sys.exit("No call waits that people have decided.")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
    sys.stdout.flush()
    # A thread of temporalio may abort an interpreter that ends right after a call
    # (temporalio/sdk-python issue 300), so this process ends without that.
    os._exit(0)
