"""What an agent says of a tool that the policy does not declare: a text, and the schema
of its arguments. Pure.

Both are the agent's words. They check nothing; people read them beside the call, and an
administrator may begin a declaration with them. So the schema is copied word by word:
only what says which values an argument takes, without references, and small enough to
read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from journal import canonical

from . import schemas

LONGEST_TEXT = 2000  # characters of the description
LARGEST_SCHEMA = 16 * 1024  # bytes, as it was sent and as it is kept
MOST_ARGUMENTS = 200  # with those of objects inside
DEEPEST = 8
LONGEST_NAME = 64
MOST_LINES = 60  # of the arguments in words
_KINDS = frozenset({*schemas.SCALARS, "array", "object"})
_COUNTS = ("maxLength", "minLength", "maxItems", "minItems")
_NUMBERS = ("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum")


class UnusableSchema(ValueError):
    """The schema cannot be kept. The message says why."""


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """A tool's description and the schema of its arguments, both as kept. `problem`
    says why the schema that the agent sent is not kept."""

    text: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


NOTHING_SAID = ToolDescription()


def build_description(text: str, schema: Mapping[str, Any]) -> ToolDescription:
    """What is kept of a text and a schema that an agent sends."""
    try:
        return ToolDescription(text.strip()[:LONGEST_TEXT], reduce_schema(schema))
    except UnusableSchema as error:
        return ToolDescription(text.strip()[:LONGEST_TEXT], problem=str(error))


def reduce_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a schema that is kept. Raises UnusableSchema."""
    if not schema:
        return {}
    if len(canonical.encode(schema)) > LARGEST_SCHEMA:
        raise UnusableSchema(f"it is larger than {LARGEST_SCHEMA // 1024} KiB")
    reduced = _Reducer(schema).reduce(schema, 0)
    if reduced.get("type") != "object" or "properties" not in reduced:
        raise UnusableSchema("it is not that of an object with properties")
    if len(canonical.encode(reduced)) > LARGEST_SCHEMA:
        size = f"{LARGEST_SCHEMA // 1024} KiB"
        raise UnusableSchema(f"it is larger than {size} with its references resolved")
    return reduced


def describe_arguments(schema: Mapping[str, Any]) -> str:
    """A kept schema in words, a line an argument: `amount: string, required. In full
    dollars`."""
    lines = list(_list_argument_lines(schema, ""))
    more = len(lines) - MOST_LINES
    return "\n".join(lines[:MOST_LINES] + ([f"and {more} more"] if more > 0 else []))


def order_arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The properties of a kept schema, those that are required first and in that order:
    the database forgets any other."""
    named = schema.get("properties", {})
    first = [name for name in schema.get("required", []) if name in named]
    return {name: named[name] for name in dict.fromkeys([*first, *named])}


def _list_argument_lines(schema: Mapping[str, Any], place: str) -> Iterator[str]:
    for name, part in order_arguments(schema).items():
        kinds = [*_list_kinds(part)]
        if name in schema.get("required", []):
            kinds.append("required")
        words = part.get("description", "")
        line = ", ".join(kinds) + (f". {words}" if words else "")
        yield f"{place}{name}: {line}" if line else f"{place}{name}"
        inner = part.get("items", part)
        yield from _list_argument_lines(inner, f"{place}{name}.")


def _list_kinds(part: Mapping[str, Any]) -> Iterator[str]:
    kinds = part.get("type", [])
    yield from [kinds] if isinstance(kinds, str) else kinds
    if "enum" in part:
        yield f"one of {canonical.encode(part['enum']).decode()}"
    for branch in part.get("anyOf", []):
        yield from _list_kinds(branch)
    if "format" in part:
        yield part["format"]


@dataclass(slots=True)
class _Reducer:
    root: Mapping[str, Any]
    arguments: int = 0

    def reduce(self, part: Any, depth: int) -> dict[str, Any]:
        if depth > DEEPEST:
            raise UnusableSchema(f"it has more than {DEEPEST} levels")
        part = schemas.resolve_reference(part, self.root)
        wrapped = part.get("allOf")
        if isinstance(wrapped, list) and len(wrapped) == 1:
            inner = schemas.resolve_reference(wrapped[0], self.root)
            part = {**inner, **{k: v for k, v in part.items() if k != "allOf"}}
        reduced = dict(_keep_words(part))
        if branches := self._reduce_branches(part, depth):
            reduced["anyOf"] = branches
            reduced.pop("type", None)
        if isinstance(part.get("items"), Mapping):
            reduced["items"] = self.reduce(part["items"], depth + 1)
        if isinstance(part.get("properties"), Mapping):
            reduced |= self._reduce_properties(part, depth)
        return reduced

    def _reduce_branches(
        self, part: Mapping[str, Any], depth: int
    ) -> list[dict[str, Any]]:
        listed = [part.get(key) for key in ("anyOf", "oneOf")]
        parts = [part for each in listed if isinstance(each, list) for part in each]
        self._count(len(parts))
        return [self.reduce(part, depth + 1) for part in parts]

    def _reduce_properties(self, part: Mapping[str, Any], depth: int) -> dict[str, Any]:
        named = part["properties"]
        self._count(len(named))
        for name in named:
            _check_name(name)
        required = part.get("required")
        required = required if isinstance(required, list) else []
        return {
            "type": "object",
            "properties": {
                name: self.reduce(part, depth + 1) for name, part in named.items()
            },
            "required": [name for name in named if name in required],
        }

    def _count(self, more: int) -> None:
        self.arguments += more
        if self.arguments > MOST_ARGUMENTS:
            raise UnusableSchema(f"it has more than {MOST_ARGUMENTS} arguments")


def _keep_words(part: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What says which values are taken: type, set of values, limits, description."""
    kinds = part.get("type")
    listed = kinds if isinstance(kinds, list) else [kinds]
    if listed and all(isinstance(kind, str) and kind in _KINDS for kind in listed):
        yield "type", kinds
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if isinstance(values, list) and values and all(map(_is_plain_value, values)):
        yield "enum", values
    for name in ("description", "format"):
        text = part.get(name)
        if isinstance(text, str) and text.strip() and _is_plain_value(text):
            yield name, text.strip()[:300]
    for name in (*_COUNTS, *_NUMBERS):
        if _is_limit(part.get(name), whole=name in _COUNTS):
            yield name, part[name]


def _is_plain_value(value: Any) -> bool:
    """Whether a policy can hold the value: it reads `${NAME}` as a variable."""
    if isinstance(value, str):
        return "${" not in value
    return value is None or isinstance(value, int | float)


def _is_limit(value: Any, *, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and value % 1 == 0 if whole else math.isfinite(value)


def _check_name(name: str) -> None:
    if len(name) > LONGEST_NAME or not name.isprintable() or "${" in name:
        raise UnusableSchema("the name of an argument is too long or not plain text")
