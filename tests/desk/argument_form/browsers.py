"""What a browser makes of an edit form: the fields it sends, as HTML says it does."""

from __future__ import annotations

import re
from typing import Any

from desk.argument_form import ArgumentForm
from desk.argument_form.fields import (
    ChoiceField,
    FormField,
    LineField,
    LockedField,
    MomentField,
)
from desk.argument_form.nested import ListField
from policies.documents import ToolDefinition


def tool_of(schema: dict[str, Any], **more: Any) -> ToolDefinition:
    """A tool with these arguments."""
    return ToolDefinition.model_validate(
        {
            "name": "pay",
            "title": "Pay",
            "schema": schema,
            "queue": "money",
            "risk": "high",
            "profile": {"reversible": False, "blast_radius": 4},
            "executor": {"kind": "agent"},
            **more,
        }
    )


def fill(form: ArgumentForm) -> dict[str, str]:
    """Every successful control of the untouched form, its value sanitised."""
    data: dict[str, str] = {}
    for node in form.walk():
        if not isinstance(node, LockedField):
            data |= _controls(node)
    return data


def _controls(node: FormField) -> dict[str, str]:
    data: dict[str, str] = {}
    if isinstance(node, MomentField):
        data[node.name] = re.sub(r"(T\d\d:\d\d):00$", r"\1", node.local)
        data[f"{node.name}:zone"] = _one_line(node.zone)
    elif isinstance(node, LineField):
        data[node.name] = _value(node)
    elif isinstance(node, ChoiceField):
        values = [option.value for option in node.options]
        assert len(set(values)) == len(values)
        chosen = [option.value for option in node.options if option.selected]
        data[node.name] = [*chosen, values[0]][0]  # a browser takes the first, unasked
    elif isinstance(node, ListField):
        data[f"{node.name}:rows"] = node.order
    if node.state_options:
        chosen = [option.value for option in node.state_options if option.selected]
        (data[f"{node.name}:is"],) = chosen
    return data


def _value(node: LineField) -> str:
    if node.multiline:
        return re.sub(r"\r\n|\r|\n", "\r\n", node.text)
    text = _one_line(node.text)
    match node.input_type:
        case "email" | "url":
            return text.strip(" \t\n\f\r")
        case "date":
            return text if re.fullmatch(r"\d{4,}-\d\d-\d\d", text) else ""
    return text


def _one_line(text: str) -> str:
    return re.sub(r"[\r\n]", "", text)
