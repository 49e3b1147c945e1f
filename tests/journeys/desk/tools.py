"""What the web and worker processes call for the journeys' own tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def standing_order(args: Mapping[str, Any]) -> dict[str, Any]:
    """What is paid to the supplier now."""
    return {
        "before": {"amount": "120.00", "currency": "USD", "due_on": "2026-12-01"},
        "keys": {},
        "facts": {},
        "preconditions": {},
        "source": "bank",
    }
