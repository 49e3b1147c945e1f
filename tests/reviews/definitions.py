"""Tool definitions for tests, as the policy's own parser reads them."""

from __future__ import annotations

from typing import Any

from policies.documents import ToolDefinition

TEXT = {"type": "string"}
REFUND = {
    "name": "process_refund",
    "title": "Refund",
    "schema": {
        "type": "object",
        "properties": {
            "order_id": TEXT,
            "amount": TEXT,
            "currency": TEXT,
            "reason": TEXT,
        },
        "required": ["order_id", "amount", "currency"],
    },
    "queue": "refunds",
    "risk": "high",
    "profile": {"reversible": False, "blast_radius": 5, "monetary": True},
    "executor": {"kind": "agent"},
}


def tool(**parts: Any) -> ToolDefinition:
    """The refund tool with these parts replaced."""
    return ToolDefinition.model_validate(REFUND | parts)
