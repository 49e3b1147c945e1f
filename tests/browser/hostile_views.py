"""A tool for each view of the presenters, and proposals that fill them with texts."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from tests.browser.hostile_tools import common
from tests.reviews.presenters import kinds

NOT_HERE = ("limits", "classes")  # what would ask for more than one approval
CONCEALED = ("Authorization",)  # of whose value a page says nothing
MONEY = ("amount", "price", "cost", "currency")  # where other text would be refused


def tools_of_views(queue: str) -> dict[str, dict[str, Any]]:
    """A tool for each view, called `k_` and its name."""
    found = yaml.safe_load(kinds.POLICY.read_text())["tools"]
    return {
        f"k_{name}": {**_kept(fields), **common(queue), "floor": "approve"}
        for name, fields in found.items()
    }


def _kept(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in fields.items() if name not in NOT_HERE}


def in_views(
    strings: Sequence[str], thread: str
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """As many proposals as it takes, for one view after another, with these strings
    in the place of every text that is not one of a few words; and which they are."""
    left = deque(strings)
    for name in itertools.cycle(kinds.EXAMPLES):
        if not left:
            return
        before = list(left)
        declared = kinds.definition(name).arguments["properties"]
        args = {
            key: value if _is_bound(key, declared) else _filled(value, left)
            for key, value in kinds.EXAMPLES[name][0].items()
        }
        placed = before[: len(before) - len(left)]
        yield {"thread": thread, "tool": f"k_{name}", "args": args}, placed


def _is_bound(name: str, declared: dict[str, Any]) -> bool:
    """Whether anything else there would be refused."""
    return name in MONEY or "enum" in declared.get(name, {})


def _filled(value: Any, left: deque[str]) -> Any:
    """The same with the next strings for its own, as long as there are any."""
    if isinstance(value, dict):
        return {
            key: part if key in (*CONCEALED, *MONEY) else _filled(part, left)
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_filled(part, left) for part in value]
    return left.popleft() if isinstance(value, str) and left else value
