"""A small policy of one tool, as data to be varied, and facts for it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from policies.documents import Document, parse_document
from policies.evaluation import Evaluation, evaluate

SAFE = {
    "reversible": True,
    "blast_radius": 1,
    "reversible_because": "It changes nothing.",
}
TOOL: dict[str, Any] = {
    "title": "Pay",
    "schema": {
        "type": "object",
        "required": ["to", "amount", "currency"],
        "properties": {
            "to": {"type": "string"},
            "amount": {"type": "string"},
            "currency": {"type": "string"},
            "note": {"type": "string"},
        },
    },
    "money": [{"amount": "amount", "currency": "currency"}],
    "queue": "money",
    "risk": "low",
    "profile": SAFE,
    "effect": "Pay {amount} {currency} to {to}",
    "execution_class": "keyed",
    "executor": {"kind": "agent"},
}
DOCUMENT: dict[str, Any] = {
    "name": "small",
    "currency": "USD",
    "queues": {"money": "Money", "other": "Other"},
    "calendars": {"desk": {"zone": "UTC", "open": []}},
    "measures": {
        "paid": {"tool": "pay", "key": "agent", "amount": "amount", "window": "1h"},
        "failures": {"event": "failure", "key": "agent", "window": "1h"},
    },
    "tools": {"pay": TOOL},
    "steps": {
        "approve": [{"role": "reviewer", "required": 1}],
        "escalate": [{"role": "supervisor", "required": 2}],
    },
    "rules": [],
}


def data(changes: Mapping[str, Any] | None = None, **tool: Any) -> dict[str, Any]:
    """The small policy with `changes` to the document and `tool` parts replaced."""
    document = deepcopy({**DOCUMENT, **(changes or {})})
    if tool:
        document["tools"]["pay"].update(deepcopy(tool))
    return document


def document(changes: Mapping[str, Any] | None = None, **tool: Any) -> Document:
    return parse_document(data(changes, **tool))


def rule(name: str = "a.rule", when: str = "true", **then: Any) -> dict[str, Any]:
    return {
        "id": name,
        "text": "Because.",
        "tools": ["pay"],
        "when": when,
        "then": then,
    }


def ruled(*rules: Mapping[str, Any], **tool: Any) -> Document:
    return document({"rules": list(rules)}, **tool)


def facts(**changes: Any) -> dict[str, Any]:
    args = {"to": "a", "amount": 1000, "currency": "USD", **changes.pop("args", {})}
    return {
        "tool": "pay",
        "args": args,
        "money": {"amount_minor": args["amount"], "currency": args["currency"]},
        "agent": {"name": "riley", "unattended": False},
        "thread": "t",
        "uncertain": 0.0,
        "clock": {"hour": 12, "minute": 0, "weekday": "mon", "desk_open": True},
        "before": {},
        "keys": {},
        "sum": {"paid": args["amount"]},
        "count": {"paid": 1, "failures": 0},
        "other_currencies": {},
        **changes,
    }


def judge(policy: Document, **changes: Any) -> Evaluation:
    return evaluate(policy, policy.tools["pay"], facts(**changes))
