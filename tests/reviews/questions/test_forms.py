"""Which schemas a question may bring, and what is stored of them."""

from __future__ import annotations

import enum
from datetime import date
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from journal.errors import InvalidInput
from reviews.questions import forms


class Colour(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    """An order."""

    colour: Colour
    size: Literal["s", "m"] = "m"
    day: date | None = None
    parcels: Annotated[int, Field(ge=1)] = 1
    marks: list[Literal["fragile", "cold"]] = []


def build(fields: dict[str, Any], **root: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": fields, **root}
    return forms.build_form_schema(schema, str.upper)


def test_a_pydantic_model_is_a_form() -> None:
    built = forms.build_form_schema(Order.model_json_schema(), str)
    assert list(built["properties"]) == built[forms.ORDER]
    assert built["required"] == ["colour"]
    assert built["properties"]["colour"]["enum"] == ["red", "blue"]
    assert built["properties"]["day"] == {
        "type": "string",
        "title": "Day",
        "format": "date",
    }
    answer = {"colour": "red", "parcels": 2, "marks": ["cold"], "day": "2026-11-28"}
    forms.check_answer(built, answer)


def test_the_texts_are_redacted_and_the_values_are_not() -> None:
    built = build({"a": {"type": "string", "title": "who", "enum": ["x"]}})
    assert built["properties"]["a"] == {"type": "string", "title": "WHO", "enum": ["x"]}


def test_titled_options_are_an_enumeration() -> None:
    options = [{"const": "a", "title": "First"}, {"const": "b"}]
    built = build({"a": {"type": "string", "oneOf": options}})
    assert built["properties"]["a"]["enum"] == ["a", "b"]
    assert built["properties"]["a"]["enumNames"] == ["FIRST", "B"]


@pytest.mark.parametrize(
    ("field", "path", "rule"),
    [
        ({"type": "string", "pattern": "a+"}, "pattern", "leave it out and check"),
        ({"type": "object", "properties": {}}, "type", "one of string"),
        ({"type": "string", "format": "ipv4"}, "format", "one of date"),
        ({"type": "string", "maxLength": -1}, "maxLength", "a whole number from 0"),
        ({"type": "string", "minLength": 9, "maxLength": 3}, "minLength", "at most"),
        ({"type": "string", "enum": []}, "enum", "1 to 100 options"),
        ({"type": "string", "enum": ["a", "a"]}, "enum", "each option once"),
        ({"type": "string", "enum": ["a\u202eb"]}, "enum[0]", "nobody sees"),
        ({"type": "integer", "enum": [1.5]}, "enum[0]", "an option of this integer"),
        ({"type": "number", "minimum": "1"}, "minimum", "a number between"),
        ({"type": "integer", "default": "one"}, "default", ""),
        ({"type": "array", "items": {"type": "integer"}}, "items.type", '"string"'),
        ({"type": "string", "title": "a" * 201}, "title", "at most 200"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "", "one type"),
    ],
)
def test_a_refused_field_is_named_with_its_repair(
    field: dict[str, Any], path: str, rule: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        build({"a": field})
    place = f"schema.properties.a.{path}".rstrip(".")
    found = {error["path"]: error["message"] for error in refused.value.errors}
    assert rule in found[place], found


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({}, "schema.type"),
        ({"type": "object"}, "schema.properties"),
        ({"type": "object", "properties": {"1": {"type": "string"}}}, "schema"),
        ({"type": "object", "properties": {"a": 1}}, "schema.properties.a"),
        ({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}, "schema"),
        ({"type": "object", "properties": {}, "required": 1}, "schema.properties"),
        ({"type": "object", "if": {}}, "schema.if"),
        ({"type": "object", "title": "a" * 20_000}, "schema"),
    ],
)
def test_a_schema_that_is_no_form_is_refused(schema: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        forms.build_form_schema(schema, str)
    assert any(error["path"].startswith(path) for error in refused.value.errors)
