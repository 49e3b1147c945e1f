"""What of the business state moved between two readings, for who had read the first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies import tools
from reviews.effects.describe import Moved, concealer
from reviews.effects.wording import scalar
from reviews.models import Revision

Reading = Mapping[str, Any]


def rows(revision: Revision, was: Reading, now: Reading) -> list[Moved]:
    """The fields of the before-state that differ, by their labels."""
    before, after = was.get("before") or {}, now.get("before") or {}
    labels = {**(was.get("labels") or {}), **(now.get("labels") or {})}
    hidden = tools.definition(revision.tool).sensitive if revision.tool else []
    conceal = concealer(revision)

    def text(state: Mapping[str, Any], name: str) -> str | None:
        if name not in state:
            return None
        said = _said(state[name])
        return str(conceal(said)) if name in hidden else said

    return [
        Moved(str(labels.get(name, name)), text(before, name), text(after, name))
        for name in dict.fromkeys([*before, *after])
        if before.get(name) != after.get(name)
    ]


def _said(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_said(one) for one in value) or "nothing"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_said(one)}" for key, one in value.items())
    return scalar(value)
