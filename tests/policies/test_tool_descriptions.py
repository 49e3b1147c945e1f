"""What is kept of an agent's own description of a tool."""

from __future__ import annotations

from typing import Any

import pytest

from policies import schemas
from policies.tool_descriptions import build_description, describe_arguments


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


CREDIT = {
    **object_of(
        amount={"type": "string", "description": "In full dollars", "examples": ["1"]},
        customer={"$ref": "#/$defs/Customer"},
        note={"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        kind={"enum": ["goodwill", "refund"]},
    ),
    "required": ["amount", "customer"],
    "$defs": {"Customer": object_of(id={"type": "string", "format": "uuid"})},
}


def test_what_says_which_values_it_takes_is_kept() -> None:
    said = build_description("  Gives a credit. ", CREDIT)
    assert (said.text, said.problem) == ("Gives a credit.", "")
    assert "$ref" not in str(said.schema)
    assert "examples" not in str(said.schema)
    schemas.compile_schema(said.schema)
    assert describe_arguments(said.schema).splitlines() == [
        "amount: string, required. In full dollars",
        "customer: object, required",
        "customer.id: string, uuid",
        "note: string, null",
        'kind: one of ["goodwill","refund"]',
    ]


LOOP = {**object_of(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}}


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({**object_of(), "title": "x" * 20_000}, "larger than 16 KiB"),
        (object_of(**{f"p{n}": {} for n in range(1000)}), "more than 200 arguments"),
        (object_of(a={"$ref": "#"}), "more than 8 levels"),
        (object_of(a={"$ref": "#"}, b={"$ref": "#"}), "more than 8 levels"),
        (object_of(**{"a\u202eb": {}}), "not plain text"),
        (object_of(**{"a\nb": {}}), "not plain text"),
        (object_of(**{"${SECRET}": {}}), "not plain text"),
        (object_of(**{"n" * 65: {}}), "too long"),
        ({"type": "array", "items": {}}, "an object with properties"),
        ({"properties": ["a"]}, "an object with properties"),
    ],
)
def test_a_schema_that_nobody_could_read_is_left_out(
    schema: dict[str, Any], problem: str
) -> None:
    said = build_description("Text", schema)
    assert (said.text, said.schema) == ("Text", {})
    assert problem in said.problem


@pytest.mark.parametrize(
    "part",
    [
        *(True, None, "x", {"type": "everything"}, {"type": [1]}, {"enum": []}),
        *({"enum": [{"a": 1}]}, {"enum": ["${X}"]}, {"description": "${X}"}),
        *({"minimum": "1"}, {"maxLength": -1}, {"allOf": "x"}, {"anyOf": 3}),
        *({"properties": 1}, {"items": 1}, {"pattern": "("}, LOOP["$defs"]["a"]),
        {"required": 1, "properties": {}},
    ],
)
def test_what_is_no_schema_is_dropped(part: Any) -> None:
    said = build_description("", {**LOOP, **object_of(a=part)})
    assert not said.problem
    schemas.compile_schema(said.schema)
    assert describe_arguments(said.schema).startswith("a")


def test_a_long_list_of_arguments_ends() -> None:
    schema = build_description("", object_of(**{f"p{n}": {} for n in range(100)}))
    assert describe_arguments(schema.schema).endswith("\nand 40 more")
