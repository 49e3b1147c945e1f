"""An agent that was written for HumanLayer, with the gate behind its decorators.

    python humanlayer_agent.py

It waits for people in its process, as it did before. To stay runnable without a model's
key, the model is a script: it asks for one note.
"""

from __future__ import annotations

import sys

from counterseal_client import Gate, get_claim
from counterseal_client.adapters.humanlayer import HumanLayer

NOTE = {"to": "ann", "text": "Your parcel is on its way."}


def main(run_id: str = "order_78291") -> None:
    with Gate() as gate:
        hl = HumanLayer(gate, run_id=run_id)

        @hl.require_approval()
        def send_note(to: str, text: str) -> str:
            """Send a note to a person."""
            key = get_claim().idempotency_key  # for the service that sends it
            sys.stdout.write(f"Sending to {to} under {key}: {text}\n")
            return f"Sent to {to}."

        with hl.name_call("call_1"):  # the model's id of the call
            sys.stdout.write(f"{send_note(**NOTE)}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
