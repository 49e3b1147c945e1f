"""Prints the OpenAPI document as TypeScript: a type for each schema, and the address,
input and answer of each operation. The TypeScript client is written against them, so a
change of the API shows there when its types are checked.

`format_type` raises ValueError for a construct that the document did not have when this
was written: a type that says too little would let a mistake through.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]

HEAD = """\
// `manage.py typescript_types` prints this file from the OpenAPI document. A test fails
// when they differ, so do not edit it.

/** A value of JSON. A decimal amount is a string: a number would be a float. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | JsonObject;

/** An object of JSON. */
export type JsonObject = { readonly [name: string]: JsonValue };
"""
INDENT = "  "
SCALARS = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
COMBINATIONS = {"anyOf": "|", "allOf": "&"}
PLACES = ("path", "query")
_NAME = re.compile(r"[A-Za-z_$][\w$]*\Z", re.ASCII)


def format_module(document: Schema) -> str:
    """The whole file."""
    schemas: dict[str, Schema] = document["components"]["schemas"]
    operations = list(list_operations(document))
    parts = [
        HEAD,
        *(format_schema(name, schemas[name]) for name in sorted(schemas)),
        format_operations(operations),
        format_routes(operations),
    ]
    return "\n".join(parts)


def list_operations(document: Schema) -> Iterator[tuple[str, str, Schema]]:
    """Method, path and description of each operation, in the order of the code."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def read_schema(content: Schema) -> Schema:
    """The schema of a request's body or of a response."""
    schema: Schema = content["content"]["application/json"]["schema"]
    return schema


def format_schema(name: str, schema: Schema) -> str:
    """One schema as an exported type."""
    comment = format_comment(schema.get("description", ""))
    if "properties" in schema:
        return f"{comment}export interface {name} {format_fields(schema)}\n"
    return f"{comment}export type {name} = {format_type(schema)};\n"


def format_fields(schema: Schema, depth: int = 0) -> str:
    """The properties of an object between braces."""
    required = schema.get("required", ())
    inner = INDENT * (depth + 1)
    lines = []
    for name, field in schema["properties"].items():
        comment = format_comment(field.get("description", ""), inner)
        mark = "" if name in required else "?"
        kind = format_type(field)
        lines.append(f"{comment}{inner}readonly {quote_name(name)}{mark}: {kind};\n")
    return "{\n" + "".join(lines) + INDENT * depth + "}"


def format_type(schema: Schema) -> str:
    """A schema as a type expression."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    for combination in ("anyOf", "allOf"):
        if combination in schema:
            return join_types(schema[combination], COMBINATIONS[combination])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    return format_plain(schema)


def format_plain(schema: Schema) -> str:
    """A schema that neither names nor combines others."""
    kind = schema.get("type")
    if kind == "array":
        return f"ReadonlyArray<{format_type(schema['items'])}>"
    if kind == "object":
        return format_object(schema)
    if kind in SCALARS:
        return SCALARS[kind]
    if kind is None and set(schema) <= {"title", "description", "default"}:
        return "JsonValue"
    raise ValueError(f"no type for {json.dumps(schema)}")


def format_object(schema: Schema) -> str:
    """An object without a name of its own."""
    values = schema.get("additionalProperties", True)
    if "properties" in schema:
        raise ValueError(f"an object needs a name: {json.dumps(schema)}")
    if isinstance(values, dict) and values:
        return f"Readonly<Record<string, {format_type(values)}>>"
    return "JsonObject"


def join_types(schemas: Iterable[Schema], sign: str) -> str:
    """Several schemas as one type expression, each type once."""
    return f" {sign} ".join(dict.fromkeys(format_type(schema) for schema in schemas))


def format_operations(operations: Iterable[tuple[str, str, Schema]]) -> str:
    """What each operation takes and answers, by its id."""
    lines = ["/** What each operation takes and answers. */\n"]
    lines.append("export interface Operations {\n")
    for _, _, operation in operations:
        lines.append(format_comment(operation.get("description", ""), INDENT))
        lines.append(f"{INDENT}readonly {operation['operationId']}: {{\n")
        for place in PLACES:
            lines.append(format_parameters(place, operation.get("parameters", ())))
        body = operation.get("requestBody")
        taken = format_type(read_schema(body)) if body else "undefined"
        lines.append(f"{INDENT * 2}readonly body: {taken};\n")
        lines.append(f"{INDENT * 2}readonly answer: {format_answer(operation)};\n")
        lines.append(f"{INDENT}}};\n")
    lines.append("}\n")
    return "".join(lines)


def format_parameters(place: str, parameters: Iterable[Schema]) -> str:
    """The parameters of one place, as a property of the operation."""
    given = [parameter for parameter in parameters if parameter["in"] == place]
    if not given:
        return f"{INDENT * 2}readonly {place}: Readonly<Record<string, never>>;\n"
    fields = {
        "properties": {parameter["name"]: parameter["schema"] for parameter in given},
        "required": [
            parameter["name"] for parameter in given if parameter.get("required")
        ],
    }
    return f"{INDENT * 2}readonly {place}: {format_fields(fields, 2)};\n"


def format_answer(operation: Schema) -> str:
    """The type of a successful answer."""
    answers = [
        read_schema(response)
        for status, response in operation["responses"].items()
        if 200 <= int(status) < 300 and "content" in response
    ]
    return join_types(answers, "|") or "undefined"


def format_routes(operations: Iterable[tuple[str, str, Schema]]) -> str:
    """Method and path of each operation, by its id: the part that runs."""
    lines = ["/** Method and path of each operation. */\n", "export const ROUTES = {\n"]
    for method, path, operation in operations:
        name = operation["operationId"]
        lines.append(f'{INDENT}{name}: ["{method}", {json.dumps(path)}],\n')
    lines.append("} as const satisfies Record<\n")
    lines.append(f"{INDENT}keyof Operations,\n{INDENT}readonly [string, string]\n>;\n")
    return "".join(lines)


def format_comment(text: str, indent: str = "") -> str:
    """A text as a comment of documentation, nothing for an empty one."""
    if not text:
        return ""
    lines = text.replace("*/", "* /").splitlines()
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


def quote_name(name: str) -> str:
    """A property's name, in quotes if it needs them."""
    return name if _NAME.match(name) else json.dumps(name)
