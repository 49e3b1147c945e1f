"""The outside world of these measurements: answers at once and keeps nothing, so that
what is timed is the gate. The policy names these functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reviews.tool_services.executors import Call


def read(args: Mapping[str, Any]) -> dict[str, Any]:
    """What a store would say of an order: facts, keys and a version."""
    return {
        "before": {"amount": "0.00"},
        "keys": {"customer": f"C-{args['order_id']}", "order": args["order_id"]},
        "facts": {"total": "99.00", "total_currency": "USD", "shipped": True},
        "preconditions": {"order_version": 7},
        "source": "bench",
        "labels": {"amount": "Amount"},
    }


def refund(call: Call) -> dict[str, Any]:
    """The effect that costs nothing."""
    return {"refund": call.idempotency_key}
