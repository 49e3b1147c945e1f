"""The TypeScript client's types are those of the OpenAPI document."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hitl import typescript_types
from hitl.api import api
from tests.guards import ROOT

FILE = ROOT / "client" / "typescript" / "src" / "api.ts"


def test_the_client_has_the_types_of_the_document() -> None:
    made = typescript_types.format_module(api.get_openapi_schema())
    again = f"manage.py typescript_types > {FILE.relative_to(ROOT)}"
    assert FILE.read_text() == made, again


def test_every_operation_that_the_client_calls_is_in_the_document() -> None:
    called = {
        name
        for file in FILE.parent.rglob("*.ts")
        if file != FILE
        for name in re.findall(r'"(agents_api_\w+)"', file.read_text())
    }
    known = {
        operation["operationId"]
        for methods in api.get_openapi_schema()["paths"].values()
        for operation in methods.values()
        if operation["tags"] == ["agents"]
    }
    assert called == known - {"agents_api_propose_batch"}


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        ({"enum": ['a"b', 1]}, '"a\\"b" | 1'),
        ({"type": "array", "items": {"$ref": "#/x/Y"}}, "ReadonlyArray<Y>"),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            "Readonly<Record<string, string>>",
        ),
        ({"allOf": [{"$ref": "#/x/Y"}], "default": {}}, "Y"),
        ({"title": "Value"}, "JsonValue"),
    ],
)
def test_a_schema_becomes_a_type(schema: dict[str, Any], kind: str) -> None:
    assert typescript_types.format_type(schema) == kind


@pytest.mark.parametrize(
    "schema", [{"oneOf": []}, {"type": "file"}, {"type": "object", "properties": {}}]
)
def test_a_construct_that_it_does_not_know_is_an_error(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"no type for|needs a name"):
        typescript_types.format_type(schema)


def test_a_comment_cannot_end_itself() -> None:
    assert typescript_types.format_comment("a */ b") == "/** a * / b */\n"
