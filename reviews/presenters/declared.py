"""What a schema says of a value: whether it leaves it any other type, so that only a
doubt is printed, and which values it lists. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from policies import schemas

_STEP = re.compile(r"\[\d+\]")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)+")
_MOMENTS = {"date-time", "date"}
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
    called = _of(schema, path).get("type")
    return isinstance(called, str) and called in _CALLED[kind]


def declared(schema: schemas.Schema, path: str) -> bool:
    """Whether the schema names what stands at this path of the arguments."""
    return schemas.declared(schema, _STEP.sub("", path)) is not None


def listed(schema: schemas.Schema, path: str) -> tuple[str, ...]:
    """The texts of which the value at this path is one; empty where it is any."""
    if '["' in path:
        return ()
    found = _of(schema, path).get("enum", ())
    return tuple(one for one in found if isinstance(one, str))


def worded(schema: schemas.Schema, path: str) -> dict[str, str]:
    """What those texts are in words: `not_received` is "not received". Only names of
    that kind, and none where two would read alike."""
    found = {one: one.replace("_", " ") for one in listed(schema, path)}
    said = list(found.values())
    return {
        one: words
        for one, words in found.items()
        if _NAME.fullmatch(one) and said.count(words) == 1
    }


def is_moment(schema: schemas.Schema, path: str) -> bool:
    """Whether the schema says that it is a moment or a day."""
    return '["' not in path and _of(schema, path).get("format") in _MOMENTS


def _of(schema: schemas.Schema, path: str) -> Mapping[str, Any]:
    found = schemas.declared(schema, _STEP.sub("", path)) or {}
    if path.endswith("]"):
        return schemas.resolve(found.get("items"), schema)
    return found
