"""The policy of the retail run: the store's eight tools, each with one reviewer's
approval before it, and nothing to recall. Built from ../shared/data/retail/tools.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.retail.store import EFFECTS

# Both ways of being sure after a crash: most are asked again under the same key, these
# are looked up by it first.
LOOKED_UP = ("cancel_pending_order", "modify_pending_order_payment")


def document(data: Path, service: str, **more: Any) -> dict[str, Any]:
    """The policy as data; `service` is the store's address, and `more` is said of every
    tool."""
    tools = json.loads((data / "tools.json").read_text())
    return {
        "name": "retail",
        "currency": "USD",
        "queues": {"store": "Store"},
        "recall": {"low": 0, "medium": 0, "high": 0, "critical": 0},
        "steps": {
            "approve": [{"role": "reviewer", "required": 1}],
            "escalate": [{"role": "supervisor", "required": 2}],
        },
        "tools": {
            tool["name"]: _tool(tool, f"{service}/{tool['name']}") | more
            for tool in tools
            if tool["name"] in EFFECTS
        },
    }


def _tool(tool: Mapping[str, Any], url: str) -> dict[str, Any]:
    name = tool["name"]
    queryable = name in LOOKED_UP
    return {
        "title": name.replace("_", " ").capitalize(),
        "description": tool["description"],
        "schema": {**tool["parameters"], "additionalProperties": False},
        "queue": "store",
        "risk": "high",
        "profile": {"reversible": False, "blast_radius": 4, "external": True},
        "floor": "approve",
        "effect": _sentence(name, tool["parameters"]["required"]),
        "execution_class": "queryable" if queryable else "keyed",
        "executor": {"kind": "webhook", "url": url},
        "look_up": {"url": f"{url}/look-up"} if queryable else None,
    }


def _sentence(name: str, arguments: list[str]) -> str:
    """`Cancel pending order: order id {order_id}, reason {reason}`"""
    chips = [f"{argument.replace('_', ' ')} {{{argument}}}" for argument in arguments]
    return f"{name.replace('_', ' ').capitalize()}: {', '.join(chips)}"
