"""Schemas are closed, stay inside themselves, and say what a person can inspect."""

from __future__ import annotations

from typing import Any

import pytest

from policies import schemas
from policies.schemas import InvalidSchema

NESTED: dict[str, Any] = {
    "type": "object",
    "required": ["who"],
    "properties": {
        "who": {"$ref": "#/$defs/person"},
        "all": {"type": "array", "items": {"$ref": "#/$defs/person"}},
    },
    "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string"}}}},
}


def paths(schema, value):
    return [
        e["path"] for e in schemas.list_errors(schemas.compile_schema(schema), value)
    ]


def test_undeclared_properties_are_refused_at_every_depth_and_named():
    value = {"who": {"name": "a", "x": 1}, "all": [{"y z": 1}], "extra": 1}
    assert sorted(paths(NESTED, value)) == [
        'args.all[0]["y z"]',
        "args.extra",
        "args.who.x",
    ]


def test_the_schema_may_say_otherwise():
    opened = {"type": "object", "additionalProperties": True}
    assert paths(opened, {"anything": 1}) == []
    assert paths({"type": "object"}, {"anything": 1}) == ["args.anything"]


def test_composition_is_closed_around_its_branches():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "anyOf": [
            {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
            {"properties": {"c": {"type": "integer"}}, "required": ["c"]},
        ],
    }
    assert paths(schema, {"a": 1, "b": 1}) == []
    assert paths(schema, {"a": 1, "b": 1, "d": 1}) == ["args.d"]


def test_missing_arguments_are_named_and_values_never_repeated():
    assert paths(NESTED, {}) == ["args.who"]
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    (error,) = schemas.list_errors(schemas.compile_schema(schema), {"n": "secret"})
    assert error == {"path": "args.n", "message": 'this is not of type "integer"'}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "array"},
        {"type": "objekt"},
        {"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"},
        {"type": "object", "properties": {"a": {"$ref": "https://x.example/s"}}},
        {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}}},
        {"type": "object", "properties": {"a": {"pattern": "(?=look)ahead"}}},
        {"type": "object", "required": "a"},
    ],
)
def test_a_schema_that_is_wrong_or_reaches_out_is_refused(schema):
    with pytest.raises(InvalidSchema):
        schemas.compile_schema(schema)


def test_patterns_are_linear():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}},
    }
    assert paths(schema, {"a": "a" * 50_000 + "!"}) == ["args.a"]


@pytest.mark.parametrize(
    ("part", "whole"),
    [
        ({"type": "string"}, True),
        ({"type": ["integer", "null"]}, True),
        ({"enum": [1, "a"]}, True),
        ({"const": {"any": "thing"}}, True),
        ({"type": "array", "items": {"type": "string"}}, True),
        ({"$ref": "#/$defs/person"}, True),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, True),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, True),
        ({}, False),
        (True, False),
        ({"type": "array"}, False),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, False),
        ({"type": "object"}, False),
        ({"type": "object", "properties": {"a": {}}}, False),
        ({"type": "object", "properties": {}, "additionalProperties": True}, False),
        ({"type": "object", "properties": {}, "patternProperties": {".": {}}}, False),
        ({"type": "string", "contentEncoding": "base64"}, False),
        ({"type": "string", "contentMediaType": "text/html"}, False),
        ({"anyOf": [{"type": "string"}, {}]}, False),
        ({"$ref": "#/$defs/none"}, False),
        ({"$ref": "#/$defs/loop"}, False),
    ],
)
def test_only_what_can_be_stated_in_full_is_inspectable(part, whole):
    root = {"$defs": {**NESTED["$defs"], "loop": {"$ref": "#/$defs/loop"}}}
    assert schemas.is_inspectable(part, root) is whole


def test_a_schema_without_an_end_is_not_inspectable():
    root = {"$defs": {"tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
    assert not schemas.is_inspectable({"$ref": "#/$defs/tree"}, root)


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("who", True),
        ("who.name", True),
        ("all.name", True),
        ("nobody", False),
        ("who.age", False),
        ("who.name.first", False),
    ],
)
def test_arguments_are_found_by_path(path, there):
    assert (schemas.find_declared(NESTED, path) is not None) is there
