"""A Restate workflow whose tool waits for people without a process that waits.

    python restate_agent.py serve   # runs what can go on
    python restate_agent.py start   # proposes, and ends
    python restate_agent.py resume  # after people decided

It needs `pip install "counterseal-client[restate]" hypercorn` and a Restate server
(INGRESS), at which this endpoint (PORT) is registered. The endpoint must serve for the
other two, and may be restarted at any time. To stay runnable without a model's key, the
model is a script: it asks for one note.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import restate
from hypercorn.asyncio import serve
from hypercorn.config import Config
from restate.client import create_client

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.restate import GateCalls, resume_run

INGRESS = os.environ.get("INGRESS", "http://127.0.0.1:8080")
PORT = os.environ.get("PORT", "9080")
NOTE = {"to": "ann", "text": "Your parcel is on its way."}


def build_agent(gate: Gate) -> tuple[list[Any], Any]:
    """The services of an endpoint, and the handler that starts the agent."""

    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    calls = GateCalls([send_note])
    agent = restate.Workflow("NoteAgent")

    @agent.main()
    async def run_agent(ctx: restate.WorkflowContext, request: str) -> str:
        """The model is a script here: it asks for a note."""
        text = await calls.start_call(
            ctx, "send_note", NOTE, thread=ctx.key(), call_id="call_1"
        )
        return f"I told Ann: {text}"

    return [agent, *calls.services], run_agent


async def main(action: str, thread: str = "order_78291") -> None:
    with Gate() as gate:
        services, run_agent = build_agent(gate)
        if action == "serve":
            config = Config.from_mapping(bind=f"127.0.0.1:{PORT}")
            app: Any = restate.app(services)
            await serve(app, config)
            return
        async with create_client(INGRESS) as client:
            if action == "start":
                await client.workflow_send(run_agent, thread, "Tell Ann.")
            elif await resume_run(client, thread, gate, wait_seconds=30):
                sys.stdout.write("It goes on.\n")
            else:
                sys.exit("No call waits that people have decided.")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
