"""What an agent asks for in these measurements. The floor keeps the same content: a
request, its reasons and the checkpoint to go on from are part of the unit of work."""

from __future__ import annotations

import base64
import uuid
from typing import Any

_BLOB = base64.b64encode(bytes(range(256))).decode()


def build_proposal_body(thread: str) -> dict[str, Any]:
    """A body of `POST /proposals`, of an order of its own, with things to redact."""
    order = uuid.uuid4().hex[:12].upper()
    return {
        "thread": thread,
        "tool": "refund",
        "args": {"order_id": order, "amount": "40.00", "currency": "USD"},
        "rationale": f"Mary Poe (mary@example.com) says that {order} came broken.",
        "expected_outcome": "40.00 USD go back to the card.",
        "evidence": [
            {"kind": "message", "source": "inbox", "text": "The lid is cracked."},
            {"kind": "order", "source": "store", "text": "Delivered two days ago."},
        ],
        "checkpoint": {
            "summary": "Waits for the refund, then answers Mary.",
            "state": {"step": "refund", "order": order, "tries": 1},
            "blob": _BLOB,
            "resume_at": "after_refund",
        },
        "preconditions": {"order_version": 7},
    }
