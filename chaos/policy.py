"""The policy of a run: every tier and every execution class, a recall window, a tool
that is decided in batches and one that agents perform themselves."""

from __future__ import annotations

from typing import Any

RECALL_S = 2
ATTEMPTS = 10  # after which even a keyed effect is a person's question
PAYMENT = {
    "type": "object",
    "properties": {
        "customer": {"type": "string", "maxLength": 40},
        "amount": {"type": "string"},
        "currency": {"enum": ["USD"]},
        "note": {"type": "string", "maxLength": 40},
    },
    "required": ["customer", "amount", "currency"],
}
GRAVE = {"reversible": False, "blast_radius": 4, "monetary": True, "external": True}
SENTENCE = "{verb} {{amount}} {{currency}} to {{customer}}"


def document(service: str) -> dict[str, Any]:
    """The policy as data; `service` is where the services answer."""
    high = {"risk": "high", "profile": GRAVE}
    return {
        "name": "chaos",
        "currency": "USD",
        "zone": "UTC",
        "queues": {"money": "Money", "grave": "Grave"},
        "recall": {"low": 0, "medium": 0, "high": RECALL_S, "critical": 0},
        "steps": {
            "approve": [{"role": "reviewer", "required": 1}],
            "escalate": [{"role": "supervisor", "required": 2}],
        },
        "tools": {
            "note": _tool(service, "note", "keyed", **_light("low", 1)),
            "tag": _tool(service, "tag", "queryable", **_light("medium", 3)),
            "pay": _tool(service, "pay", "keyed", **high),
            "ship": _tool(service, "ship", "queryable", **high),
            "letter": _tool(service, "letter", "opaque", **high),
            "repay": _tool(service, "repay", "keyed", **high, **_batchable()),
            "deploy": _tool(service, "deploy", "keyed", **high)
            | {"executor": {"kind": "agent"}},
            "wipe": _tool(
                service, "wipe", "keyed", risk="critical", profile=GRAVE, queue="grave"
            ),
        },
    }


def _light(risk: str, radius: int) -> dict[str, Any]:
    because = "The service forgets it with the run."
    profile = {"reversible": True, "blast_radius": radius}
    return {"risk": risk, "profile": {**profile, "reversible_because": because}}


def _tool(service: str, name: str, way: str, **more: Any) -> dict[str, Any]:
    url = f"{service}/{name}"
    tool = {
        "title": name.capitalize(),
        "schema": PAYMENT,
        "money": [{"amount": "amount", "currency": "currency"}],
        "queue": "money",
        "effect": SENTENCE.format(verb=name.capitalize()),
        "timeout": "30m",
        "retry": {"attempts": ATTEMPTS, "base_seconds": 1, "most_seconds": 4},
        "execution_class": way,
        "executor": {"kind": "webhook", "url": url},
        **more,
    }
    return tool | ({"look_up": {"url": f"{url}/look-up"}} if way == "queryable" else {})


def _batchable() -> dict[str, Any]:
    return {
        "reversal": {"kind": "partly", "undo": "Ask for it.", "stays": "The fee."},
        "batchable": {
            "items": 50,
            "per_item": {"amount": "200.00", "currency": "USD"},
            "total": {"amount": "5000.00", "currency": "USD"},
            "varying": ["customer", "amount", "note"],
        },
    }
