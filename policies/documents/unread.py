"""Finds keys of a document that nothing reads: typos in a tool's schema, and settings
that have no effect. Pure.

Each check yields (path, message), as `checks` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .definitions import ToolDefinition
from .wording import Problem, suggest_name

# The keywords of JSON Schema 2020-12, grouped by what they contain: one schema, schemas
# by name, a list of schemas, or a plain value.
_SCHEMA = {
    "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems",
    "contains", "propertyNames", "not", "if", "then", "else", "contentSchema",
}  # fmt: skip
_SCHEMAS_BY_NAME = {"properties", "patternProperties", "$defs", "dependentSchemas"}
_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_VALUES = {
    "$schema", "$id", "$ref", "$anchor", "$dynamicRef", "$dynamicAnchor", "$comment",
    "$vocabulary", "type", "enum", "const", "multipleOf", "maximum", "minimum",
    "exclusiveMaximum", "exclusiveMinimum", "maxLength", "minLength", "pattern",
    "maxItems", "minItems", "uniqueItems", "maxContains", "minContains",
    "maxProperties", "minProperties", "required", "dependentRequired", "format",
    "contentEncoding", "contentMediaType", "title", "description", "default",
    "deprecated", "readOnly", "writeOnly", "examples",
}  # fmt: skip
KEYWORDS = _SCHEMA | _SCHEMAS_BY_NAME | _LISTS | _VALUES


def list_schema_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    """Problems of a tool's schema: keywords that JSON Schema does not define, and
    properties that are required but not declared, so that every call would be
    refused."""
    yield from _walk_schema(tool.arguments, f"{path}.schema")


def _walk_schema(schema: Any, path: str) -> Iterator[Problem]:
    if not isinstance(schema, Mapping):
        return
    for word, inner in schema.items():
        where = f"{path}.{word}"
        if word not in KEYWORDS and not word.startswith("x-"):
            hint = suggest_name(word, KEYWORDS) or "; remove it, or begin it with x-"
            yield where, f"{word} is not a keyword of JSON Schema{hint}"
        for name, part in _list_subschemas(word, inner):
            yield from _walk_schema(part, f"{where}.{name}".rstrip("."))
    yield from _list_required_problems(schema, path)


def _list_subschemas(word: str, inner: Any) -> Iterator[tuple[str, Any]]:
    """The schemas under a keyword, each with its name there."""
    if word in _SCHEMA:
        yield "", inner
    elif word in _SCHEMAS_BY_NAME and isinstance(inner, Mapping):
        yield from inner.items()
    elif word in _LISTS and isinstance(inner, list):
        yield from ((str(number), part) for number, part in enumerate(inner))


def _list_required_problems(schema: Mapping[str, Any], path: str) -> Iterator[Problem]:
    declared, required = schema.get("properties"), schema.get("required")
    is_open = schema.get("additionalProperties", False) is not False
    if not isinstance(declared, Mapping) or not isinstance(required, list) or is_open:
        return
    for name in required:
        if name not in declared and "patternProperties" not in schema:
            hint = suggest_name(name, declared)
            yield f"{path}.required", f"{name} is not among the properties{hint}"


def list_setting_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    """Settings of a tool that have no effect in combination with its other settings."""
    yield from _list_money_problems(tool, path)
    for field in ("balances", "counts"):
        for shown in getattr(tool, field):
            if shown.fact not in tool.facts:
                hint = suggest_name(shown.fact, tool.facts) or "; add it there"
                message = f"{shown.fact} is not among the tool's facts{hint}"
                yield f"{path}.{field}", message


def _list_money_problems(tool: ToolDefinition, path: str) -> Iterator[Problem]:
    """Settings that only a tool with money, or only the view `money`, uses."""
    batch = tool.batchable
    if batch and not tool.moves_money and (batch.per_item or batch.total):
        yield (
            f"{path}.batchable",
            "a ceiling requires money: declare money, or remove it",
        )
    for field in ("balances", "limits"):
        if not getattr(tool, field):
            continue
        if not tool.moves_money:
            yield f"{path}.{field}", f"{field} require money: declare money"
        elif tool.presenter != "money":
            message = f"only the view money shows {field}: write presenter: money"
            yield f"{path}.{field}", message
