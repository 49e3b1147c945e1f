"""The values that a record of a person or of an agent has: what was asked for, or what
is in force since then and what was before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies import budgets
from policies.documents import EVERY_TOOL
from reviews.effects.wording import WordingPart, format_names

FIELD_WORDS = {
    "role": "role",
    "ceiling": "highest amount",
    "queues": "queues",
    "owner": "owner",
    "tools": "tools",
    "risk_ceiling": "maximum risk",
    "daily_proposals": "proposals in 24 hours",
    "daily_money": "money in 24 hours",
    "version": "version",
    "email": "mail address",
}
_EMPTY = {
    "ceiling": "any amount",
    "daily_proposals": "no limit",
    "daily_money": "no limit",
}
_AGENT_FIELDS = ("owner", "tools", "risk_ceiling", "daily_proposals", "daily_money")


@dataclass(frozen=True, slots=True)
class ValueLine:
    """One value in a record; `before` is empty where the record has no former one."""

    label: str
    before: str
    after: str


def name_fields(data: Mapping[str, Any]) -> str:
    """What changed, in words: `the role and the highest amount`."""
    changed = str(data.get("fields", "")).split() or data.get("before") or ()
    words = [f"the {FIELD_WORDS.get(name, name)}" for name in changed]
    return format_names(words, most=len(FIELD_WORDS)) or "nothing"


def list_values(
    leaf: Mapping[str, Any], names: Mapping[str, WordingPart]
) -> list[ValueLine]:
    """The values of a record, in the order of `FIELD_WORDS`; none for other records.
    `names` are of people, by public id."""
    data, kind = leaf["data"] or {}, leaf["kind"] or ""
    before: Mapping[str, Any] = data.get("before") or {}
    after: Mapping[str, Any] = data.get("wanted") or data
    if kind.startswith("authority."):
        fields = {"role", "ceiling", "queues"} & after.keys()
    elif kind == "agent.registered":
        fields = set(_AGENT_FIELDS)
    elif kind.startswith(("person.changed", "agent.change", "agent.released")):
        fields = set(before)
    else:
        return []
    return [
        ValueLine(
            label,
            _format_value(name, before[name], names) if name in before else "",
            _format_value(name, after.get(name), names),
        )
        for name, label in FIELD_WORDS.items()
        if name in fields
    ]


def list_owners(leaf: Mapping[str, Any]) -> Iterator[str]:
    """The public ids of the people in these values."""
    data = leaf["data"] or {}
    if leaf["kind"] in {"agent.registered", "agent.changed"}:
        yield data.get("owner", "")
        if former := (data.get("before") or {}).get("owner"):
            yield former


def _format_value(name: str, value: Any, names: Mapping[str, WordingPart]) -> str:
    if not value or value == "none":
        return _EMPTY.get(name, "none")
    if name == "owner":
        return names[value].text if value in names else str(value)
    if name == "daily_money":
        return " and ".join(budgets.format_budget(value))
    if name == "tools":
        return "every tool" if EVERY_TOOL in value else ", ".join(value)
    return ", ".join(value.split()) if name == "queues" else str(value)
