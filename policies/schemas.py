"""JSON Schemas (2020-12) of tool arguments. Pure; it never fetches a reference.

An object accepts only the properties that it declares, unless its schema says
otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs
from jsonschema_rs import Draft202012Validator, RegexOptions, ValidationError
from jsonschema_rs import ValidationErrorKind as Kind

from journal.errors import FieldError, build_field_error

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_OPENERS = ("additionalProperties", "unevaluatedProperties")
# Keywords of encoded content, which a person cannot inspect.
_OPAQUE = ("contentEncoding", "contentMediaType", "contentSchema")
SCALARS = {"string", "number", "integer", "boolean", "null"}

Schema = Mapping[str, Any]


class InvalidSchema(ValueError):
    """The schema cannot be used for a tool's arguments. The message says why."""


def compile_schema(schema: Schema) -> Draft202012Validator:
    """Build the validator of a schema, closed against undeclared properties.

    Patterns run on the linear-time engine, references stay inside the schema, and
    messages never repeat a value. Raises `InvalidSchema`.
    """
    if schema.get("$schema", DIALECT) != DIALECT:
        raise InvalidSchema("the dialect must be JSON Schema 2020-12")
    if schema.get("type") != "object":
        raise InvalidSchema('the arguments must be an object: write "type: object"')
    try:
        return Draft202012Validator(
            close_schema(schema),
            mask="this",
            offline=True,
            validate_formats=True,
            pattern_options=RegexOptions(),
        )
    except (ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        raise InvalidSchema(str(error).split("\n", 1)[0]) from None


def list_errors(
    validator: Draft202012Validator, value: Any, root: str = "args"
) -> list[FieldError]:
    """The errors of a value, without the value, with paths that begin with `root`."""
    return [
        build_field_error(path, message)
        for error in validator.iter_errors(value)
        for path, message in _explain_error(error, root)
    ]


def close_schema(schema: Any) -> Any:
    """The same schema, in which every object refuses properties it does not declare.

    Schemas inside `allOf` and similar keywords stay open, because the object around
    them decides.
    """
    if not isinstance(schema, dict):
        return schema
    result = {key: _close_member(key, value) for key, value in schema.items()}
    is_object = "properties" in schema or "object" in _list_kinds(schema)
    if is_object and not any(key in schema for key in _OPENERS):
        result["unevaluatedProperties"] = False
    return result


def find_declared(schema: Schema, path: str) -> Mapping[str, Any] | None:
    """The subschema of an argument such as `address.city`, or None. A path goes through
    a list to its elements without a mark of its own."""
    subschema: Any = schema
    for name in path.split("."):
        subschema = resolve_reference(subschema, schema)
        if isinstance(subschema.get("items"), dict) and "properties" not in subschema:
            subschema = resolve_reference(subschema["items"], schema)
        subschema = subschema.get("properties", {}).get(name)
        if not isinstance(subschema, dict):
            return None
    return resolve_reference(subschema, schema)


def may_be_absent(schema: Schema, path: str) -> bool:
    """Whether a call that fits the schema can be without a value at a path such as
    `items[*].price`: an argument on the way may be left out or null, or a list may be
    empty."""
    subschema: Any = schema
    for step in path.split("."):
        name, each = step.removesuffix("[*]"), step.endswith("[*]")
        subschema = resolve_reference(subschema, schema)
        part = resolve_reference(subschema.get("properties", {}).get(name), schema)
        required = subschema.get("required", [])
        if name not in required or "null" in list_kinds(part, schema):
            return True
        if not each:
            subschema = part
            continue
        if part.get("minItems", 0) < 1:
            return True
        subschema = resolve_reference(part.get("items"), schema)
        if "null" in list_kinds(subschema, schema):
            return True
    return False


def list_kinds(subschema: Any, root: Schema, depth: int = 0) -> set[str]:
    """The types of the values that a subschema allows: of its `type`, of its closed set
    of values, or of its alternatives. Empty where it does not say."""
    resolved = resolve_reference(subschema, root)
    if "enum" in resolved or "const" in resolved:
        known = resolved.get("enum", [resolved.get("const")])
        return {_find_kind(value) for value in known}
    branches = [part for key in ("anyOf", "oneOf") for part in resolved.get(key, [])]
    if branches and depth < 8:
        return {kind for part in branches for kind in list_kinds(part, root, depth + 1)}
    return set(_list_kinds(resolved))


def _find_kind(value: Any) -> str:
    if value is None:
        return "null"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return kinds.get(type(value)) or ("array" if type(value) is list else "object")


def resolve_reference(subschema: Any, root: Schema) -> dict[str, Any]:
    """Follow the local `$ref`s of a subschema. Returns an empty schema for a reference
    that cannot be followed and for anything that is not a schema object."""
    for _ in range(8):  # a chain of references, not a loop
        if not isinstance(subschema, dict):
            return {}
        reference = subschema.get("$ref")
        if not isinstance(reference, str):
            return subschema
        subschema = _follow_pointer(root, reference)
    return {}


def is_inspectable(subschema: Any, root: Schema, depth: int = 0) -> bool:
    """Whether every value that the subschema allows can be shown to a person in full.

    That is a closed set of values, a plain scalar, a list of inspectable elements, or
    an object whose properties are all declared and inspectable. Anything else is not,
    and neither is encoded content, which nobody reads.
    """
    resolved = resolve_reference(subschema, root)
    if depth > 8 or any(key in resolved for key in _OPAQUE):
        return False
    if "enum" in resolved or "const" in resolved:
        return True
    branches = [part for key in ("anyOf", "oneOf") for part in resolved.get(key, [])]
    if branches:
        return all(is_inspectable(part, root, depth + 1) for part in branches)
    kinds = _list_kinds(resolved)
    return bool(kinds) and all(
        _is_kind_inspectable(name, resolved, root, depth) for name in kinds
    )


def _list_kinds(schema: Schema) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _is_kind_inspectable(name: str, schema: Schema, root: Schema, depth: int) -> bool:
    if name in SCALARS:
        return True
    if name == "array":
        items = [*schema.get("prefixItems", []), schema.get("items")]
        return all(is_inspectable(item, root, depth + 1) for item in items)
    if any(schema.get(key) not in (None, False) for key in _OPENERS):
        return False
    if "patternProperties" in schema or "properties" not in schema:
        return False
    parts = schema["properties"].values()
    return all(is_inspectable(part, root, depth + 1) for part in parts)


def _close_member(key: str, value: Any) -> Any:
    if key in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
        return {name: close_schema(part) for name, part in value.items()}
    if key == "items":
        return close_schema(value)
    if key == "prefixItems" and isinstance(value, list):
        return [close_schema(part) for part in value]
    return value


def _follow_pointer(root: Schema, reference: str) -> Any:
    if not reference.startswith("#"):
        return {}
    target: Any = root
    for part in reference.lstrip("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(target, Mapping) or name not in target:
            return {}
        target = target[name]
    return target


def _explain_error(error: ValidationError, root: str) -> Iterator[tuple[str, str]]:
    path = root + "".join(_format_step(part) for part in error.instance_path)
    kind = error.kind
    if isinstance(kind, Kind.AdditionalProperties | Kind.UnevaluatedProperties):
        for name in sorted(kind.unexpected):
            yield path + _format_step(name), "this is not an argument of the tool"
    elif isinstance(kind, Kind.Required):
        yield path + _format_step(kind.property), "this argument is required"
    else:
        yield path, error.message


def _format_step(key: str | int) -> str:
    """One step of a path, in the format of `journal.canonical`."""
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key[:64])}]"
