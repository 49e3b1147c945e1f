"""Counting votes over steps, without I/O. Each person has one vote over all steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypedDict

from policies.choices import Role


class StepData(TypedDict):
    """One stored step: the role that may fill it, and how many approvals it needs."""

    role: str
    required: int


def can_fill_step(role: str, step_role: str) -> bool:
    """Whether a role can fill a step: its own, and a supervisor also a reviewer's."""
    return role == step_role or (role == Role.SUPERVISOR and step_role == Role.REVIEWER)


def missing(steps: Sequence[StepData], given: Iterable[int]) -> list[int]:
    """How many approvals each step lacks; `given` has the step index of every vote."""
    counted = Counter(given)
    return [max(step["required"] - counted[i], 0) for i, step in enumerate(steps)]


def find_step_to_fill(
    steps: Sequence[StepData], given: Iterable[int], role: str
) -> int | None:
    """The index of the step that this role's vote counts for, or None. A step of
    exactly this role comes first: if a supervisor filled a reviewer's step while a
    supervisor's step was open, the open one might never be filled."""
    lacking = missing(steps, given)
    fillable = [
        i for i, n in enumerate(lacking) if n and can_fill_step(role, steps[i]["role"])
    ]
    exact = [i for i in fillable if steps[i]["role"] == role]
    return next(iter([*exact, *fillable]), None)


def is_weaker(steps: Sequence[StepData], *, than: Sequence[StepData]) -> bool:
    """Whether `steps` ask for fewer people or fewer supervisors than `than`."""
    return any(
        _count_required(steps, role) < _count_required(than, role)
        for role in (Role.REVIEWER, Role.SUPERVISOR)
    )


def _count_required(steps: Sequence[StepData], role: str) -> int:
    """How many approvals this role, or one that may replace it, has to give."""
    return sum(step["required"] for step in steps if can_fill_step(step["role"], role))


def is_complete(steps: Sequence[StepData], given: Iterable[int]) -> bool:
    return not any(missing(steps, given))  # guard: all-steps


def list_unfinished_steps(
    steps: Sequence[StepData], given: Iterable[int]
) -> list[StepData]:
    """The steps that still lack approvals, each with its full count. They are asked
    again when the required authority changes."""
    return [
        step for step, lacks in zip(steps, missing(steps, given), strict=True) if lacks
    ]
