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
_BRANCH_KEYWORDS = ("oneOf", "anyOf")
_MOST_LEVELS = (
    8  # levels of branches and references, since a schema may refer to itself
)
_IMPLIED_TYPES = {"properties": "object", "items": "array", "pattern": "string"}


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The merged schema of one place, and its single type."""

    schema: Mapping[str, Any]
    kind: str  # a type of JSON Schema; "" when it cannot be decided
    nullable: bool

    @property
    def properties(self) -> Mapping[str, Any]:
        properties = self.schema.get("properties", {})
        return properties if isinstance(properties, Mapping) else {}

    @property
    def required(self) -> tuple[str, ...]:
        return tuple(self.schema.get("required", ()))

    @property
    def options(self) -> list[Any]:
        """The values of a closed set, without null; empty for an open one."""
        values = self.schema.get("enum", [])
        return [item for item in values if item is not None]


def build_spec(subschema: Any, root: Mapping[str, Any], value: Any) -> FieldSpec:
    """The spec of a place that holds `value`, which is MISSING for none yet."""
    merged, nullable = _merge_schema(subschema, root, value, 0)
    if merged is None:
        return FieldSpec({}, "", nullable=False)
    types = merged.get("type", ())
    kinds = {types} if isinstance(types, str) else set(types)
    nullable = nullable or "null" in kinds or None in merged.get("enum", ())
    return FieldSpec(merged, _find_type(kinds - {"null"}, merged, value), nullable)


def _merge_schema(
    subschema: Any, root: Mapping[str, Any], value: Any, depth: int
) -> tuple[dict[str, Any] | None, bool]:
    """The schema without references and branches, and whether a branch is null. The
    schema is None when no single branch fits."""
    if not isinstance(subschema, Mapping) or depth > _MOST_LEVELS:
        return None, False
    merged = dict(subschema)
    if isinstance(merged.pop("$ref", None), str):
        merged = _combine_schemas(schemas.resolve_reference(subschema, root), merged)
    for part in merged.pop("allOf", ()):
        inner, _ = _merge_schema(part, root, value, depth + 1)
        merged = _combine_schemas(merged, inner or {})
    nullable = False
    for key in _BRANCH_KEYWORDS:
        if key not in merged:
            continue
        branches = merged.pop(key)
        nullable = nullable or any(map(_is_null_branch, branches))
        branch = _find_fitting_branch(
            [b for b in branches if not _is_null_branch(b)], root, value
        )
        inner, more = _merge_schema(branch, root, value, depth + 1)
        if inner is None:
            return None, nullable
        nullable = nullable or more
        merged = _combine_schemas(merged, inner)
    return merged, nullable


def _combine_schemas(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> dict[str, Any]:
    """Two schemas that both apply, merged as far as a form needs it."""
    both = {**first, **second}
    for key in ("properties", "$defs"):
        if key in first and key in second:
            both[key] = {**first[key], **second[key]}
    if "required" in first and "required" in second:
        both["required"] = [*first["required"], *second["required"]]
    return both


def _find_fitting_branch(
    branches: list[Any], root: Mapping[str, Any], value: Any
) -> Any:
    """The only branch, or the only one that accepts the value; else None."""
    if len(branches) == 1:
        return branches[0]
    if value is MISSING or value is None:
        return None
    fitting = [branch for branch in branches if _accepts_value(branch, root, value)]
    return fitting[0] if len(fitting) == 1 else None


def _accepts_value(branch: Any, root: Mapping[str, Any], value: Any) -> bool:
    alone = {"$defs": root.get("$defs", {}), "allOf": [branch]}
    try:
        validator = Draft202012Validator(
            alone, offline=True, validate_formats=True, pattern_options=RegexOptions()
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return False
    return bool(validator.is_valid(value))


def _is_null_branch(branch: Any) -> bool:
    return isinstance(branch, Mapping) and (
        branch.get("type") == "null" or branch.get("const", MISSING) is None
    )


def _find_type(kinds: set[str], schema: Mapping[str, Any], value: Any) -> str:
    if len(kinds) == 1:
        return next(iter(kinds))
    if not kinds:
        kinds = {kind for key, kind in _IMPLIED_TYPES.items() if key in schema}
        if len(kinds) == 1:
            return next(iter(kinds))
    return _find_value_type(value, kinds)


def _find_value_type(value: Any, kinds: Iterable[str]) -> str:
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


def is_same_json(left: Any, right: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1."""
    if left is MISSING or right is MISSING:
        return left is right
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)
