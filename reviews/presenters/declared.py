"""Whether a schema leaves a value any other type: only a doubt is printed. Pure."""

from __future__ import annotations

import re

from policies import schemas

_STEP = re.compile(r"\[\d+\]")
# The words of a cell, and what a schema calls them. An empty text prints nothing and
# nothing reads like a word, so neither is ever beyond doubt.
_CALLED = {
    "number": {"number", "integer"},
    "yes or no": {"boolean"},
    "empty list": {"array"},
    "empty group": {"object"},
}


def settles(schema: schemas.Schema, path: str, kind: str) -> bool:
    """Whether what stands at this path of the arguments can be of this type only."""
    if kind not in _CALLED or '["' in path:
        return False
    found = schemas.declared(schema, _STEP.sub("", path)) or {}
    if path.endswith("]"):
        found = schemas.resolve(found.get("items"), schema)
    called = found.get("type")
    return isinstance(called, str) and called in _CALLED[kind]
