"""Tools that the policy does not declare, where it says that their calls are held.

Such a call is decided like any other, so it needs a definition: one that is made from
what the call has, and from what is safe to assume. It cannot be undone or tried again,
only its agent performs it, and no batch and no standing grant ever covers it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .argument_guesses import guess_view
from .choices import ExecutionClass, Risk
from .documents import TOOL_NAME, UndeclaredTool, UnknownTools
from .documents.usual_sentences import build_title
from .tool_descriptions import NOTHING_SAID, ToolDescription

MOST_ARGUMENTS = 200
MOST_FORMS = 20
"""How many kinds of calls of one name are held; see `tools.find_undeclared_tool`."""
DEEPEST = 6  # lists and objects inside one another
_TYPES: Sequence[tuple[type, str]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
)


def can_hold(name: str, args: Mapping[str, Any]) -> bool:
    """Whether a call of this name with these arguments can have a definition."""
    return bool(re.fullmatch(TOOL_NAME, name)) and len(args) <= MOST_ARGUMENTS


def build_definition(
    name: str,
    args: Mapping[str, Any],
    held: UnknownTools,
    described: ToolDescription = NOTHING_SAID,
) -> UndeclaredTool:
    """The definition for a call that `can_hold` allows. Equal calls give equal ones.
    `described` is what the agent says of the tool: it checks nothing."""
    view = guess_view(args)
    data = {
        "name": name,
        "title": build_title(name),
        "description": described.text,
        "seen_schema": described.schema,
        "schema_problem": described.problem,
        "schema": infer_schema(args, sorted(view.paths)),
        "money": list(view.money),
        "queue": held.hold,
        "risk": Risk.HIGH,
        "profile": {"reversible": False, "blast_radius": 4},
        "floor": held.tier,
        "presenter": view.presenter,
        "shown": dict(view.shown),
        "execution_class": ExecutionClass.OPAQUE,
        "executor": {"kind": "agent"},
    }
    return UndeclaredTool.model_validate(data)


def infer_schema(args: Mapping[str, Any], required: Sequence[str]) -> dict[str, Any]:
    """A JSON Schema that takes arguments like these and no others."""
    return {**_infer_object(args, 0), "required": list(required)}


def _infer_object(value: Mapping[str, Any], depth: int) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            name: _infer_part(part, depth + 1) for name, part in value.items()
        },
    }


def _infer_part(value: Any, depth: int) -> dict[str, Any]:
    if isinstance(value, dict):
        # Without its parts, nobody can inspect it, and the call is blocked.
        return _infer_object(value, depth) if depth < DEEPEST else {"type": "object"}
    if isinstance(value, list):
        if depth >= DEEPEST:
            return {"type": "array"}
        return {"type": "array", "items": _infer_items(value, depth + 1)}
    known = (name for kind, name in _TYPES if isinstance(value, kind))
    return {"type": next(known, "null")}


def _infer_items(values: Sequence[Any], depth: int) -> dict[str, Any]:
    kinds = {json.dumps(part := _infer_part(v, depth)): part for v in values}
    if len(kinds) < 2:
        return next(iter(kinds.values()), {"type": "string"})
    return {"anyOf": [kinds[kind] for kind in sorted(kinds)]}
