"""The schema of a server's tool as the gate takes it: JSON Schema 2020-12.

Servers send older drafts and OpenAPI's dialect. What says the same in 2020-12 is
rewritten. What only describes, and a pattern that the gate's engine does not take, is
left out with a note. A schema that could not be taken without another meaning is
refused. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .policy_patterns import UntakenPattern, adapt_pattern

LARGEST_INTEGER = 2**53 - 1
_UNSTORABLE = re.compile(r"[\ud800-\udfff]|\$\{[A-Za-z_][A-Za-z0-9_]*\}")
DEEPEST = 60  # schemas inside one another
_TYPES = {"string", "number", "integer", "boolean", "null", "array", "object"}
_ONE = {
    "items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems",
    "contains", "propertyNames", "not", "if", "then", "else", "contentSchema",
}  # fmt: skip
_NAMED = {"properties", "patternProperties", "$defs", "dependentSchemas"}
_LISTS = {"allOf", "anyOf", "oneOf", "prefixItems"}
_TEXTS = {"format", "contentEncoding", "contentMediaType"}
_COUNTS = {
    "maxLength", "minLength", "maxItems", "minItems", "maxContains", "minContains",
    "maxProperties", "minProperties",
}  # fmt: skip
_NUMBERS = {
    "multipleOf", "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum",
}  # fmt: skip
# What only describes, with the kind of value that the gate takes there.
_NOTES: dict[str, type] = {
    "title": str, "description": str, "$comment": str, "deprecated": bool,
    "readOnly": bool, "writeOnly": bool, "examples": list, "default": object,
}  # fmt: skip


class UntakenSchema(ValueError):
    """The gate cannot take this schema. The message says why."""


@dataclass(frozen=True, slots=True)
class AdaptedSchema:
    """A schema for the policy, and what was left out of the server's, a line each."""

    schema: dict[str, Any]
    notes: tuple[str, ...]


def adapt_schema(given: Any) -> AdaptedSchema:
    """The schema of a tool's arguments for the policy. Raises UntakenSchema."""
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise UntakenSchema("its inputSchema is no object")
    adapter = _Adapter(given)
    words = {word: value for word, value in given.items() if word != "nullable"}
    schema = adapter.adapt(words, "")
    if "object" not in _list_kinds(schema.get("type", "object")):
        raise UntakenSchema("its arguments are no object")
    schema["type"] = "object"
    adapter.check_references(schema)
    return AdaptedSchema(schema, tuple(dict.fromkeys(adapter.notes)))


def _list_kinds(kinds: Any) -> list[Any]:
    return kinds if isinstance(kinds, list) else [kinds]


@dataclass(slots=True)
class _Adapter:
    root: Mapping[str, Any]
    notes: list[str] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    depth: int = 0

    def adapt(self, given: Any, place: str) -> Any:
        """One schema, at `place` in the server's."""
        if isinstance(given, bool):
            return given
        if not isinstance(given, Mapping):
            raise UntakenSchema(f"{place or 'its schema'} is no schema")
        if self.depth > DEEPEST:
            raise UntakenSchema(f"its schema has more than {DEEPEST} levels")
        self.depth += 1
        made: dict[str, Any] = {}
        for word, value in _modernize(given).items():
            _require(is_storable(word), f"a name in {place or 'it'}", "not storable")
            self._add(made, word, value, f"{place}.{word}".lstrip("."))
        self.depth -= 1
        return self._complete(made, given, place)

    def _add(self, made: dict[str, Any], word: str, value: Any, place: str) -> None:
        if word in _ONE:
            made[word] = self.adapt(value, place)
        elif word in _NAMED:
            made[word] = self._adapt_named(word, value, place)
        elif word in _LISTS:
            _require(isinstance(value, list) and value, place, "no list of schemas")
            made[word] = [
                self.adapt(one, f"{place}[{n}]") for n, one in enumerate(value)
            ]
        elif word in _NOTES or word.startswith("x-"):
            self._add_note(made, word, value, place)
        elif adapt := _ASSERTIONS.get(word):
            adapted = adapt(self, value, place)
            if adapted is not None or word == "const":
                made[word] = adapted
        elif word != "nullable":
            self.notes.append(f"{place} is left out: 2020-12 has no such keyword.")

    def _add_note(
        self, made: dict[str, Any], word: str, value: Any, place: str
    ) -> None:
        if not isinstance(value, _NOTES.get(word, object)):
            self.notes.append(f"{place} is left out: its value is of the wrong kind.")
        elif not is_storable(value):
            self.notes.append(f"{place} is left out: a policy cannot hold its value.")
        else:
            made[word] = value

    def _adapt_named(self, word: str, value: Any, place: str) -> dict[str, Any]:
        _require(isinstance(value, Mapping), place, "no object of schemas")
        made = {}
        for name, part in value.items():
            key = str(name)
            _require(is_storable([key]), f"a name in {place}", "not storable")
            if word == "patternProperties":
                try:
                    key = adapt_pattern(key)
                except UntakenPattern as error:
                    raise UntakenSchema(f"{place}: of a pattern, {error}") from None
            made[key] = self.adapt(part, f"{place}.{name}")
        return made

    def adapt_pattern(self, value: Any, place: str) -> str | None:
        _require(isinstance(value, str), place, "no text")
        try:
            return adapt_pattern(value)
        except UntakenPattern as error:
            self.notes.append(f"{place} is left out: {error}.")
            return None

    def adapt_type(self, value: Any, place: str) -> Any:
        kinds = value if isinstance(value, list) else [value]
        if "any" in kinds:  # of draft 3
            return None
        known = all(isinstance(one, str) and one in _TYPES for one in kinds)
        _require(known and kinds, place, "no type of JSON")
        unique = list(dict.fromkeys(kinds))
        return unique if isinstance(value, list) else value

    def adapt_reference(self, value: Any, place: str) -> str:
        _require(isinstance(value, str), place, "no reference")
        own = self.root.get("$id") or self.root.get("id")
        if isinstance(own, str) and own and value.startswith(own.rstrip("#")):
            value = value[len(own.rstrip("#")) :] or "#"
        reference = _modernize_pointer(value)
        self.references.append(reference)
        return reference

    def check_references(self, schema: Mapping[str, Any]) -> None:
        """Raise UntakenSchema for a reference that leads out of the schema."""
        for reference in self.references:
            found: Any = schema if reference.startswith("#") else None
            for part in reference.removeprefix("#").split("/")[1:]:
                name = part.replace("~1", "/").replace("~0", "~")
                if isinstance(found, list) and name.isdecimal():
                    found = dict(enumerate(found)).get(int(name))
                else:
                    found = found.get(name) if isinstance(found, Mapping) else None
            plain = reference == "#" or reference.startswith("#/")
            if not plain or not isinstance(found, Mapping | bool):
                shown = reference[:80]
                raise UntakenSchema(f"it refers to {shown!a}, which is not in it")

    def _complete(
        self, made: dict[str, Any], given: Mapping[str, Any], place: str
    ) -> dict[str, Any]:
        _declare_required(made, self.notes, place)
        return _admit_null(made) if given.get("nullable") is True else made


def _modernize(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same schema with the words of 2020-12 for those of older drafts."""
    made = {str(word): value for word, value in given.items()}
    for modernize in (
        *(_merge_definitions, _convert_edges, _convert_items, _split_dependencies),
        *(_convert_identity, _collect_required),
    ):
        modernize(made)
    return made


def _merge_definitions(made: dict[str, Any]) -> None:
    older, newer = made.pop("definitions", {}), made.get("$defs", {})
    both = isinstance(older, Mapping) and isinstance(newer, Mapping)
    _require(both, "definitions", "no object of schemas")
    if any(newer.get(name, part) != part for name, part in older.items()):
        raise UntakenSchema("definitions and $defs have different parts of one name")
    if older:
        made["$defs"] = {**older, **newer}


def _convert_edges(made: dict[str, Any]) -> None:
    """`exclusiveMinimum: true` of draft 4 and OpenAPI 3.0."""
    for limit in ("Minimum", "Maximum"):
        edge = made.get(f"exclusive{limit}")
        if isinstance(edge, bool):
            del made[f"exclusive{limit}"]
        if edge is True and limit.lower() in made:
            made[f"exclusive{limit}"] = made.pop(limit.lower())


def _convert_items(made: dict[str, Any]) -> None:
    """A list of `items` of drafts before 2020-12."""
    others = made.pop("additionalItems", None)
    if not isinstance(made.get("items"), list):
        return
    first = made.pop("items")
    if first:
        made["prefixItems"] = first
    if others is not None:
        made["items"] = others


def _convert_identity(made: dict[str, Any]) -> None:
    """References, which lead into this schema only, and examples."""
    for word in ("$recursiveRef", "$dynamicRef"):
        if word in made:
            made["$ref"] = made.pop(word)
    for word in ("$id", "id", "$schema", "$vocabulary", "$anchor"):
        if isinstance(made.get(word), str | dict):
            del made[word]
    for word in ("$recursiveAnchor", "$dynamicAnchor"):
        made.pop(word, None)
    if "example" in made and "examples" not in made:
        made["examples"] = [made.pop("example")]


def _split_dependencies(made: dict[str, Any]) -> None:
    older = made.pop("dependencies", None)
    if older is None:
        return
    _require(isinstance(older, Mapping), "dependencies", "no object")
    for name, part in older.items():
        word = "dependentRequired" if isinstance(part, list) else "dependentSchemas"
        made[word] = {**made.get(word, {}), name: part}


def _collect_required(made: dict[str, Any]) -> None:
    """`required: true` of draft 3 stands in a property, and means its object."""
    parts = made.get("properties")
    if isinstance(made.get("required"), bool):
        del made["required"]
    named = [
        str(name)
        for name, part in (parts.items() if isinstance(parts, Mapping) else ())
        if isinstance(part, Mapping) and part.get("required") is True
    ]
    if named:
        made["required"] = [*made.get("required", []), *named]


def _modernize_pointer(reference: str) -> str:
    """A reference with `$defs` for `definitions`, where that is no property's name."""
    parts = reference.split("/")
    place = 1
    while place < len(parts):
        if parts[place] == "definitions":
            parts[place] = "$defs"
        by_name = parts[place] in _NAMED or parts[place] in _LISTS
        place += 2 if by_name else 1
    return "/".join(parts)


def _declare_required(made: dict[str, Any], notes: list[str], place: str) -> None:
    """Declare what is required and not declared: the gate closes every object."""
    declared, required = made.get("properties"), made.get("required")
    is_open = made.get("additionalProperties", False) is not False
    if not isinstance(declared, dict) or not required or is_open:
        return
    missing = [name for name in required if name not in declared]
    if missing and "patternProperties" not in made:
        declared.update({name: {} for name in missing})
        where = f"{place}.properties".lstrip(".")
        notes.append(f"{where}: {', '.join(missing)} is required, so it is declared.")


def _admit_null(made: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI's `nullable: true`: null is allowed, too."""
    kinds = made.get("type")
    if kinds is None and not ({"$ref", "allOf", "anyOf", "oneOf"} & set(made)):
        return made
    simple = not ({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"} & set(made))
    if kinds is None or not simple:
        notes = {word: made.pop(word) for word in list(made) if word in _NOTES}
        return {**notes, "anyOf": [made, {"type": "null"}]}
    listed = kinds if isinstance(kinds, list) else [kinds]
    made["type"] = list(dict.fromkeys([*listed, "null"]))
    if "enum" in made and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    return made


def _require(holds: Any, place: str, what: str) -> None:
    if not holds:
        raise UntakenSchema(f"{place} is {what}")


def is_storable(value: Any) -> bool:
    """Whether a policy can hold the value: it takes no half of a character, no integer
    beyond 2^53, and reads `${NAME}` as a variable."""
    if isinstance(value, str):
        return not _UNSTORABLE.search(value)
    if isinstance(value, Mapping):
        return all(is_storable(part) for part in [*value, *value.values()])
    if isinstance(value, list):
        return all(map(is_storable, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or abs(value) <= LARGEST_INTEGER


def _adapt_number(adapter: _Adapter, value: Any, place: str) -> Any:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    _require(plain, place, "no number")
    if not is_storable(value):
        adapter.notes.append(f"{place} is left out: a policy cannot hold its value.")
        return None
    _require(value > 0 or not place.endswith("multipleOf"), place, "not above 0")
    return value


def _adapt_count(adapter: _Adapter, value: Any, place: str) -> Any:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    _require(plain and value >= 0 and value % 1 == 0, place, "no count")
    number = _adapt_number(adapter, value, place)
    return None if number is None else int(number)


def _adapt_names(_: _Adapter, value: Any, place: str) -> list[str]:
    plain = isinstance(value, list) and all(isinstance(one, str) for one in value)
    _require(plain and is_storable(value), place, "no list of names")
    return list(dict.fromkeys(value))


def _adapt_dependents(adapter: _Adapter, value: Any, place: str) -> dict[str, Any]:
    _require(isinstance(value, Mapping), place, "no object")
    return {
        str(name): _adapt_names(adapter, part, f"{place}.{name}")
        for name, part in value.items()
    }


def _adapt_values(_: _Adapter, value: Any, place: str) -> Any:
    _require(isinstance(value, list) and value, place, "no list of values")
    _require(is_storable(value), place, "not storable in a policy")
    return value


def _adapt_constant(_: _Adapter, value: Any, place: str) -> Any:
    _require(is_storable(value), place, "not storable in a policy")
    return value


def _adapt_text(_: _Adapter, value: Any, place: str) -> Any:
    _require(isinstance(value, str) and is_storable(value), place, "no text")
    return value


def _adapt_flag(_: _Adapter, value: Any, place: str) -> Any:
    _require(isinstance(value, bool), place, "neither true nor false")
    return value


_ASSERTIONS: dict[str, Callable[[_Adapter, Any, str], Any]] = {
    **dict.fromkeys(_NUMBERS, _adapt_number),
    **dict.fromkeys(_COUNTS, _adapt_count),
    **dict.fromkeys(_TEXTS, _adapt_text),
    "type": _Adapter.adapt_type,
    "pattern": _Adapter.adapt_pattern,
    "$ref": _Adapter.adapt_reference,
    "enum": _adapt_values,
    "const": _adapt_constant,
    "required": _adapt_names,
    "dependentRequired": _adapt_dependents,
    "uniqueItems": _adapt_flag,
}
