"""How many: counting votes over steps. Pure; one vote a human over all steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

from policies.choices import Role


class StepData(TypedDict):
    """One step as it is stored: who may fill it, and how many must."""

    role: str
    required: int


def fills(role: str, step_role: str) -> bool:
    """A supervisor may fill a reviewer's place; nobody fills another's."""
    return role == step_role or (role == Role.SUPERVISOR and step_role == Role.REVIEWER)


def missing(steps: Sequence[StepData], given: Iterable[int]) -> list[int]:
    """For each step, how many approvals it still lacks; `given` are step indexes."""
    counted = Counter(given)
    return [max(step["required"] - counted[i], 0) for i, step in enumerate(steps)]


def place(steps: Sequence[StepData], given: Iterable[int], role: str) -> int | None:
    """The step this role's vote counts for, or None.

    The strictest unfinished step comes first: a supervisor who took a reviewer's
    place while a supervisor's stood empty could leave it unfillable.
    """
    lacking = missing(steps, given)
    fillable = [i for i, n in enumerate(lacking) if n and fills(role, steps[i]["role"])]
    exact = [i for i in fillable if steps[i]["role"] == role]
    return next(iter([*exact, *fillable]), None)


def weaker(steps: Sequence[StepData], *, than: Sequence[StepData]) -> bool:
    """Whether steps ask for fewer people, or for fewer supervisors."""
    return any(
        _places(steps, role) < _places(than, role)
        for role in (Role.REVIEWER, Role.SUPERVISOR)
    )


def _places(steps: Sequence[StepData], role: str) -> int:
    """How many places only this role, or one that may stand in for it, can fill."""
    return sum(step["required"] for step in steps if fills(step["role"], role))


def complete(steps: Sequence[StepData], given: Iterable[int]) -> bool:
    """Whether every step has its approvals."""
    return not any(missing(steps, given))  # guard: all-steps


def unfinished(steps: Sequence[StepData], given: Iterable[int]) -> list[StepData]:
    """The steps that stay when authority changes: asked afresh, in full."""
    return [
        step for step, lacks in zip(steps, missing(steps, given), strict=True) if lacks
    ]
