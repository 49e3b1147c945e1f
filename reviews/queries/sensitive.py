"""Arguments as they leave for people's programs: what the schema marks sensitive is a
chip, as on the page, and a chip that comes back in an edit means "as it was"."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from policies import tools
from reviews.effects import describe
from reviews.models import Revision

Change = Callable[[Any, Any], Any]


def hidden(revision: Revision) -> dict[str, Any]:
    """The arguments with a chip for every sensitive value."""
    conceal = _conceal(revision)
    return _walked(revision, revision.args, lambda value, _: conceal(value))


def restored(revision: Revision, args: Mapping[str, Any]) -> dict[str, Any]:
    """Edited arguments with the values that their unchanged chips stand for."""
    conceal = _conceal(revision)
    return _walked(
        revision, args, lambda value, was: was if value == conceal(was) else value
    )


def _conceal(revision: Revision) -> Callable[[Any], str]:
    conceal = describe.concealer(revision)
    return lambda value: str(conceal(json.dumps(value, ensure_ascii=False)))


def _walked(
    revision: Revision, args: Mapping[str, Any], change: Change
) -> dict[str, Any]:
    tool = revision.tool
    names = tools.definition(tool).sensitive if tool else []
    found: dict[str, Any] = _changed(args, revision.args, "", names, change)
    return found


def _changed(value: Any, was: Any, path: str, names: list[str], change: Change) -> Any:
    """`change` applied to each sensitive leaf, with what stood there before."""
    if isinstance(value, Mapping):
        before = was if isinstance(was, Mapping) else {}
        return {
            key: _changed(
                item, before.get(key), f"{path}.{key}".strip("."), names, change
            )
            for key, item in value.items()
        }
    if isinstance(value, list):
        rows = was if isinstance(was, list) else []
        padded = [*rows, *[None] * len(value)]
        pairs = zip(value, padded, strict=False)
        return [_changed(item, old, path, names, change) for item, old in pairs]
    sensitive = any(path == name or path.startswith(f"{name}.") for name in names)
    return change(value, was) if sensitive else value
