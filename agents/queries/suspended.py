"""A checkpoint as people may read it: what the agent says of its own goal, plan and
budget set apart, the rest of its state as a typed table. Never the blob.

`goal`, `plan` and `budget` are names that an agent may use in `checkpoint.state`; all
of it is the agent's own word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from reviews.effects.wording import lines_of, scalar

MOST_ROWS = 200
DEEPEST = 12
# A sign for the words that agents use most; any other word stands alone.
SIGNS = {
    "done": "ok",
    "doing": "run",
    "waiting": "pause",
    "next": "wait",
    "skipped": "void",
    "failed": "no",
}


@dataclass(frozen=True, slots=True)
class PlanStep:
    text: str
    state: str = ""

    @property
    def icon(self) -> str:
        return SIGNS.get(self.state, "")


@dataclass(frozen=True, slots=True)
class Cell:
    """One leaf of the state: where it is, what kind of value, and the value."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """What an agent's state says."""

    goal: str = ""
    plan: list[PlanStep] = field(default_factory=list)
    budget: list[tuple[str, str]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    more: int = 0

    @property
    def any(self) -> bool:
        return bool(self.goal or self.plan or self.budget)


def told(state: Mapping[str, Any]) -> Told:
    """The state with the three names set apart, where they have a shape that can be."""
    rest = dict(state)
    goal, plan = state.get("goal"), _plan(state.get("plan"))
    budget = state.get("budget")
    if isinstance(goal, str):
        rest.pop("goal")
    if plan:
        rest.pop("plan")
    if isinstance(budget, dict):
        rest.pop("budget")
    cells = list(_cells(rest))
    return Told(
        goal=goal if isinstance(goal, str) else "",
        plan=plan,
        budget=list(lines_of(budget)) if isinstance(budget, dict) and budget else [],
        cells=cells[:MOST_ROWS],
        more=max(len(cells) - MOST_ROWS, 0),
    )


def _plan(said: Any) -> list[PlanStep]:
    """Sentences, or pairs `{"step": …, "state": …}`; anything else is no plan."""
    steps = [_plan_step(one) for one in said] if isinstance(said, list) else []
    return [one for one in steps if one] if all(steps) else []


def _plan_step(one: Any) -> PlanStep | None:
    if isinstance(one, str):
        return PlanStep(one)
    if isinstance(one, dict) and set(one) <= {"step", "state"} and "step" in one:
        return PlanStep(scalar(one["step"]), scalar(one.get("state", "")))
    return None


def _cells(value: Any, path: str = "", depth: int = 0) -> Iterator[Cell]:
    if isinstance(value, dict) and value and depth < DEEPEST:
        for key, inner in value.items():
            yield from _cells(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list) and value and depth < DEEPEST:
        for number, inner in enumerate(value, 1):
            yield from _cells(inner, f"{path} {number}".strip(), depth + 1)
    elif path:
        yield Cell(path, _kind(value), scalar(value))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return "list"
    return "group" if isinstance(value, dict) else "text"
