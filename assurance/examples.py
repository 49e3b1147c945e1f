"""One made-up example of each kind of defect, planted by the library itself, so that
administrators see what it does without reading anybody's request. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from policies.documents import ToolDefinition
from reviews.choices import DefectKind

from .defects import BY_KIND, CloneSubject, find_planted_defect

RATIONALE = "Order O-1042 was charged 40.00 too much."
# The arguments of one call for each view that a defect is made for.
CALLS: Mapping[str, Mapping[str, Any]] = {
    "email": {
        "to": ["ann@example.com"],
        "bcc": [],
        "subject": "Your order",
        "body": "Hello",
    },
    "money": {
        "payee": "Ann",
        "account": "DE89370400440532013000",
        "amount": "40.00",
        "currency": "EUR",
        "order": "O-1042",
    },
    "file": {"path": "/srv/app/config.yaml", "content": "a: 1"},
    "shell": {"command": "git push origin main", "host": "staging.example.com"},
    "sql": {"statement": "DELETE FROM carts WHERE id = 7", "database": "shop-test"},
    "access": {"who": "ann", "role": ["reader"], "until": "2026-12-01"},
    "deploy": {"repository": "shop", "environment": "staging", "force": False},
    "publish": {"where": "/news", "audience": "staff", "text": "Hello"},
    "http": {"method": "POST", "url": "https://api.example.com/orders"},
}
_TEXT = {"type": "string"}
_LIST = {"type": "array", "items": _TEXT}
_TOOL: Mapping[str, Any] = {
    "name": "example",
    "title": "Example",
    "queue": "examples",
    "risk": "high",
    "profile": {"reversible": False, "blast_radius": 5},
    "executor": {"kind": "agent"},
}


@dataclass(frozen=True, slots=True)
class DefectExample:
    """What a defect changes: the argument, or the rationale, before and after."""

    label: str
    before: str
    after: str


@cache
def build_subjects() -> tuple[CloneSubject, ...]:
    """The calls of all examples."""
    return tuple(
        CloneSubject(_build_tool(presenter, args), args, RATIONALE)
        for presenter, args in CALLS.items()
    )


def _build_tool(presenter: str, args: Mapping[str, Any]) -> ToolDefinition:
    kinds = {
        name: _LIST if isinstance(value, list) else {"type": ["string", "boolean"]}
        for name, value in args.items()
    }
    money = [{"amount": "amount", "currency": "currency"}] if "amount" in args else []
    return ToolDefinition.model_validate(
        {
            **_TOOL,
            "presenter": presenter,
            "schema": {"type": "object", "properties": kinds},
            "money": money,
        }
    )


def build_example(kind: DefectKind) -> DefectExample:
    """The example of a kind. Raises LookupError if it fits none of the calls; a test
    shows that each one fits."""
    for subject in build_subjects():
        planted = find_planted_defect(subject, BY_KIND[kind])
        if planted is None:
            continue
        change, name = planted.change, planted.change.field
        if not name:
            return DefectExample("rationale", subject.rationale, change.rationale)
        return DefectExample(
            name, _format_value(subject.args[name]), _format_value(change.args[name])
        )
    raise LookupError(kind)


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "empty"
    return str(value).lower() if isinstance(value, bool) else str(value)
