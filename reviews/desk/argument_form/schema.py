"""What a subschema allows at one place, as far as a form can tell. Pure.

References are followed and `allOf` is merged; of several branches, the one that the
proposed value fits is taken. A place that stays undecided cannot be edited. The whole
schema still validates every edit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs
from jsonschema_rs import Draft202012Validator, RegexOptions

from policies import schemas

MISSING: Any = object()
NUMBERS = frozenset({"integer", "number"})
_BRANCHES = ("oneOf", "anyOf")
_MANY = 8  # levels of branches and references, since a schema may refer to itself
_IMPLIED = {"properties": "object", "items": "array", "pattern": "string"}


@dataclass(frozen=True, slots=True)
class Spec:
    """The merged schema of one place, and its single type."""

    schema: Mapping[str, Any]
    kind: str  # a type of JSON Schema; "" when it cannot be decided
    nullable: bool

    @property
    def properties(self) -> Mapping[str, Any]:
        found = self.schema.get("properties", {})
        return found if isinstance(found, Mapping) else {}

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self.schema.get("required", ()))

    @property
    def options(self) -> list[Any]:
        """The values of a closed set, without null; empty for an open one."""
        found = self.schema.get("enum", [])
        return [item for item in found if item is not None]


def specify(subschema: Any, root: Mapping[str, Any], value: Any) -> Spec:
    """The spec of a place that holds `value`; MISSING for a place without a value
    yet."""
    merged, nullable = _merged(subschema, root, value, 0)
    if merged is None:
        return Spec({}, "", nullable=False)
    kinds = _kinds(merged)
    nullable = nullable or "null" in kinds or None in merged.get("enum", ())
    return Spec(merged, _kind(kinds - {"null"}, merged, value), nullable)


def _merged(
    subschema: Any, root: Mapping[str, Any], value: Any, depth: int
) -> tuple[dict[str, Any] | None, bool]:
    """The schema without references and branches, and whether a branch is null. The
    schema is None when no single branch fits."""
    if not isinstance(subschema, Mapping) or depth > _MANY:
        return None, False
    found = dict(subschema)
    if isinstance(found.pop("$ref", None), str):
        found = _both(schemas.resolve(subschema, root), found)
    for part in found.pop("allOf", ()):
        inner, _ = _merged(part, root, value, depth + 1)
        found = _both(found, inner or {})
    nullable = False
    for key in _BRANCHES:
        if key not in found:
            continue
        branches = found.pop(key)
        nullable = nullable or any(map(_is_null, branches))
        branch = _fitting([b for b in branches if not _is_null(b)], root, value)
        inner, more = _merged(branch, root, value, depth + 1)
        if inner is None:
            return None, nullable
        nullable = nullable or more
        found = _both(found, inner)
    return found, nullable


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two schemas that both apply, merged as far as a form needs it."""
    both = {**one, **other}
    for key in ("properties", "$defs"):
        if key in one and key in other:
            both[key] = {**one[key], **other[key]}
    if "required" in one and "required" in other:
        both["required"] = [*one["required"], *other["required"]]
    return both


def _fitting(branches: list[Any], root: Mapping[str, Any], value: Any) -> Any:
    """The only branch, or the only one that accepts the value; else None."""
    if len(branches) == 1:
        return branches[0]
    if value is MISSING or value is None:
        return None
    fitting = [branch for branch in branches if _fits(branch, root, value)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(branch: Any, root: Mapping[str, Any], value: Any) -> bool:
    alone = {"$defs": root.get("$defs", {}), "allOf": [branch]}
    try:
        validator = Draft202012Validator(
            alone, offline=True, validate_formats=True, pattern_options=RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return False
    return bool(validator.is_valid(value))


def _is_null(branch: Any) -> bool:
    return isinstance(branch, Mapping) and (
        branch.get("type") == "null" or branch.get("const", MISSING) is None
    )


def _kinds(schema: Mapping[str, Any]) -> set[str]:
    kinds = schema.get("type", ())
    return {kinds} if isinstance(kinds, str) else set(kinds)


def _kind(kinds: set[str], schema: Mapping[str, Any], value: Any) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if not kinds:
        kinds = {kind for key, kind in _IMPLIED.items() if key in schema}
        if len(kinds) == 1:
            return next(iter(kinds))
    return _kind_of(value, kinds)


def _kind_of(value: Any, kinds: Iterable[str]) -> str:
    """The type of the present value, where the schema allows several."""
    if value is MISSING or value is None:
        return "number" if set(kinds) == NUMBERS else ""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number" if "number" in kinds or not set(kinds) else "integer"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1."""
    if one is MISSING or other is MISSING:
        return one is other
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
