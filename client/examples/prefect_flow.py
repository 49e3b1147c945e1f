"""A Prefect flow whose tool waits for people without a process that waits.

    python prefect_flow.py serve                # runs what can go on
    python prefect_flow.py start                # proposes; prints the id of the run
    python prefect_flow.py resume FLOW_RUN_ID   # after people decided

It needs `pip install "counterseal-client[prefect]"` and a server of Prefect
(`prefect server start`, PREFECT_API_URL). To stay runnable without a model's key, the
model is a script: it asks for one note.
"""

from __future__ import annotations

import sys
import uuid

from prefect import flow
from prefect.deployments import run_deployment

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.prefect import GateCall, perform_calls, resume_flow

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


def open_gate() -> Gate:
    return Gate()


@flow(name="notes", persist_result=True, log_prints=True)
def write_notes() -> str:
    with open_gate() as gate:

        @gate.tool
        def send_note(to: str, text: str) -> dict[str, str]:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return {"sent": to}

        (text,) = perform_calls([GateCall(send_note, NOTE, "call_1")])
        return f"I told Ann: {text}"


def main(action: str, flow_run_id: str = "") -> None:
    if action == "serve":
        write_notes.serve(name="counterseal")
    elif action == "start":
        flow_run = run_deployment("notes/counterseal", timeout=0)
        sys.stdout.write(f"{flow_run.id}\n")
    else:
        with open_gate() as gate:
            if not resume_flow(uuid.UUID(flow_run_id), gate, wait_seconds=30):
                sys.exit("No call waits that people have decided.")


if __name__ == "__main__":
    main(*sys.argv[1:])
