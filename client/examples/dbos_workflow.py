"""A DBOS workflow whose tool waits for people without a process that waits.

    python dbos_workflow.py start   # proposes, and ends
    python dbos_workflow.py resume  # after people decided

It needs `pip install "counterseal-client[dbos]"`; FILE is DBOS's database. To stay
runnable without a model's key, the model is a script: it asks for one note."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from dbos import DBOS, SetWorkflowID

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.dbos import (
    build_workflow,
    list_waiting,
    resume_workflow,
)

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


def build_agent(gate: Gate) -> Any:
    """The workflow; DBOS must know all workflows before it is launched."""

    @gate.tool
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        key = get_claim().idempotency_key  # for the service that sends it
        sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
        return {"sent": to}

    note = build_workflow(send_note)

    @DBOS.workflow()
    async def run_agent(thread: str) -> str:
        """The model is a script here: it asks for a note."""
        text = await note(NOTE, thread=thread, call_id="call_1")
        return f"I told Ann: {text}"

    return run_agent


def main(
    action: str, thread: str = "order_78291", file: str = "dbos_workflow.sqlite3"
) -> None:
    with Gate() as gate:
        config: Any = {"name": "notes", "system_database_url": f"sqlite:///{file}"}
        DBOS(config=config)
        run_agent = build_agent(gate)
        DBOS.launch()  # also goes on with what an earlier process left
        if action == "start":
            with SetWorkflowID(thread):
                DBOS.start_workflow(run_agent, thread)
            while not (waiting := list_waiting(thread)):
                time.sleep(0.1)
            for facts in waiting.values():
                sys.stdout.write(f"Waits for people: {facts['url']}\n")
        elif resume_workflow(thread, gate, wait_seconds=30):
            sys.stdout.write(f"{DBOS.retrieve_workflow(thread).get_result()}\n")
        else:
            sys.stdout.write("No call waits that people have decided.\n")
    sys.stdout.flush()
    os._exit(0)  # DBOS.destroy() would fail the workflow that waits


if __name__ == "__main__":
    main(*sys.argv[1:])
