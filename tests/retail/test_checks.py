"""What the checks of a retail run let pass, and what they name."""

from __future__ import annotations

import pytest

from . import checks

BEFORE = ("proposal.submitted", "execution.queued", "execution.claimed")
AFTER = ("execution.succeeded",)


@pytest.mark.parametrize(
    "between",
    [
        ("execution.reclaimed",),
        ("execution.requeued", "execution.claimed"),
        ("execution.reclaimed", "execution.requeued", "execution.claimed"),
        ("decision.refused",),
    ],
)
def test_what_a_fault_adds_is_no_step(between: tuple[str, ...]) -> None:
    besides = {checks.TAKEN_OVER, "decision.refused"}
    said = [*BEFORE, *between, *AFTER]
    assert checks._steps(said, besides) == (*BEFORE, *AFTER)


@pytest.mark.parametrize(
    "between", [("execution.claimed",), ("execution.requeued",), AFTER]
)
def test_a_step_too_many_is_one(between: tuple[str, ...]) -> None:
    said = [*BEFORE, *between, *AFTER]
    assert checks._steps(said, {checks.TAKEN_OVER}) == tuple(said)


def test_what_differs_is_named() -> None:
    assert checks._other({1: "a", 2: "b"}, {1: "a", 2: "c", 3: "d"}) == {
        2: ("b", "c"),
        3: (None, "d"),
    }
