"""The edit form of arguments: what it shows, what it gives back, what it locks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal.errors import FieldError
from policies.documents import ToolDefinition
from reviews.forms import arguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "amount", "currency", "kind"],
    "properties": {
        "name": {"type": "string", "maxLength": 60},
        "body": {"type": "string", "maxLength": 4000},
        "amount": {"type": "string"},
        "currency": {"type": "string"},
        "kind": {"enum": ["full", "partial"]},
        "level": {"type": "integer"},
        "share": {"type": "number"},
        "urgent": {"type": "boolean"},
        "to": {"type": "array", "items": {"type": "string"}},
        "secret": {"type": "string"},
        "place": {"$ref": "#/$defs/place"},
        "lines": {"type": "array", "items": {"type": "object"}},
        "always": {"const": "x"},
    },
    "$defs": {
        "place": {
            "type": "object",
            "required": ["city"],
            "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
        }
    },
}
ARGS: dict[str, Any] = {
    "name": "Dana",
    "amount": "899.00",
    "currency": "USD",
    "kind": "full",
    "level": 3,
    "to": ["a@x.example", "b@x.example"],
    "secret": "s3cr3t",
    "place": {"city": "Reno"},
    "lines": [{"sku": "1"}],
}


@pytest.fixture(scope="module")
def tool() -> ToolDefinition:
    return ToolDefinition.model_validate(
        {
            "name": "pay",
            "title": "Pay",
            "schema": SCHEMA,
            "money": [{"amount": "amount", "currency": "currency"}],
            "sensitive": ["secret"],
            "queue": "money",
            "risk": "high",
            "profile": {"reversible": False, "blast_radius": 4},
            "executor": {"kind": "agent"},
        }
    )


def by_name(tool: ToolDefinition, **more: Any) -> dict[str, arguments.Field]:
    found = arguments.fields(tool, ARGS, labels={"name": "Customer"}, **more)
    return {field.name.removeprefix("arg."): field for field in found}


def sent(
    tool: ToolDefinition, args: dict[str, Any] | None = None, **changes: str
) -> dict[str, str]:
    """What a browser sends for the form as it was shown."""
    data = {}
    for field in arguments.fields(tool, args or ARGS, labels={}):
        if field.locked or (field.kind == "boolean" and field.value != "true"):
            continue
        data[field.name] = field.value.replace("\n", "\r\n")
    return data | {f"arg.{name}": value for name, value in changes.items()}


def test_every_argument_has_an_input_of_its_type(tool: ToolDefinition) -> None:
    kinds = {name: field.kind for name, field in by_name(tool).items()}
    assert kinds == {
        "name": "line",
        "body": "text",
        "amount": "line",
        "currency": "locked",
        "kind": "choice",
        "level": "line",
        "share": "line",
        "urgent": "boolean",
        "to": "lines",
        "secret": "locked",
        "place.city": "line",
        "place.floor": "line",
        "lines": "locked",
        "always": "locked",
    }


def test_inputs_are_filled_labelled_and_say_their_keyboard(
    tool: ToolDefinition,
) -> None:
    found = by_name(tool)
    assert found["name"].label == "Customer"
    assert found["place.city"].label == "Place, City"
    assert found["to"].value == "a@x.example\nb@x.example"
    assert found["amount"].inputmode == found["level"].inputmode == "decimal"
    assert [o.value for o in found["kind"].options if o.selected] == ["full"]
    assert not any(field.changed for field in found.values())


def test_a_sensitive_value_never_reaches_the_form(tool: ToolDefinition) -> None:
    assert "s3cr3t" not in repr(by_name(tool))


def test_what_is_sent_back_untouched_is_the_proposal(tool: ToolDefinition) -> None:
    assert arguments.read(tool, ARGS, sent(tool)) == (ARGS, [])


@given(
    name=st.text(max_size=50),
    body=st.text(max_size=90),
    level=st.integers(),
    to=st.lists(st.text(max_size=9), max_size=4),
)
def test_no_text_is_changed_by_the_way_there_and_back(
    tool: ToolDefinition, name: str, body: str, level: int, to: list[str]
) -> None:
    args = {**ARGS, "name": name, "body": body, "level": level, "to": to}
    assert arguments.read(tool, args, sent(tool, args)) == (args, [])


@pytest.mark.parametrize(
    "text", ["a\u202eb", "zero\u200bwidth", "nul\x00", "\u2028", "a\rb"]
)
def test_what_a_form_would_lose_is_locked(tool: ToolDefinition, text: str) -> None:
    args = {**ARGS, "name": text}
    field = next(
        f for f in arguments.fields(tool, args, labels={}) if f.name == "arg.name"
    )
    assert field.locked == arguments.INVISIBLE
    read, _ = arguments.read(tool, args, sent(tool) | {"arg.name": "other"})
    assert read["name"] == text


def test_changes_come_back_typed(tool: ToolDefinition) -> None:
    changes: dict[str, Any] = {
        "level": "-4",
        "share": "0.5",
        "urgent": "true",
        "kind": "partial",
        "to": "c@x.example\r\n\r\n",
        "place.city": "Elko",
        "place.floor": "2",
    }
    read, wrong = arguments.read(tool, ARGS, sent(tool, **changes))
    assert not wrong
    assert (read["level"], read["share"], read["urgent"]) == (-4, 0.5, True)
    assert (read["kind"], read["to"]) == ("partial", ["c@x.example"])
    assert read["place"] == {"city": "Elko", "floor": 2}
    assert ARGS["place"] == {"city": "Reno"}


def test_an_emptied_optional_argument_is_left_out(tool: ToolDefinition) -> None:
    read, _ = arguments.read(tool, ARGS, sent(tool, level="", name=""))
    assert "level" not in read
    assert read["name"] == ""


@pytest.mark.parametrize("text", ["many", "nan", "inf", "1e999", "1.2.3"])
def test_what_is_no_number_is_said_at_its_path(tool: ToolDefinition, text: str) -> None:
    _, wrong = arguments.read(tool, ARGS, sent(tool, level=text))
    assert [error["path"] for error in wrong] == ["args.level"]
    _, wrong = arguments.read(tool, ARGS, sent(tool, kind="other"))
    assert [error["path"] for error in wrong] == ["args.kind"]


def test_errors_stand_beside_their_input_and_the_rest_above(
    tool: ToolDefinition,
) -> None:
    errors: list[FieldError] = [
        {"path": "args.to[1]", "message": "not an address"},
        {"path": "args", "message": "above what you may decide"},
    ]
    found = by_name(tool, data=sent(tool, to="x"), errors=errors)
    assert found["to"].error == "not an address"
    assert found["to"].value == "x"
    above = arguments.unplaced(found.values(), errors)
    assert [error["message"] for error in above] == ["above what you may decide"]
