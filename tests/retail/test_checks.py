"""What the checks of a retail run let pass, and what they name."""

from __future__ import annotations

import pytest

from journal import clock
from reviews.alarms import standing
from reviews.choices import AlarmKind
from reviews.executions import claims
from reviews.models import Execution
from tests import factories
from tests.conftest import Gate
from tests.retail import checks
from tests.reviews import states

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
    kinds = [*BEFORE, *between, *AFTER]
    assert checks._steps(kinds, besides) == (*BEFORE, *AFTER)


@pytest.mark.parametrize(
    "between", [("execution.claimed",), ("execution.requeued",), AFTER]
)
def test_a_step_too_many_is_one(between: tuple[str, ...]) -> None:
    kinds = [*BEFORE, *between, *AFTER]
    assert checks._steps(kinds, {checks.TAKEN_OVER}) == tuple(kinds)


@pytest.fixture
def again(gate: Gate) -> Execution:
    """One whose first worker was given up, at a tool that is looked up."""
    execution = states.claimed(gate, "pay_queryable")
    factories.lapsed(execution)
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim is not None
    assert claim.fence == 2
    return execution


def test_what_a_worker_says_that_was_given_up_is_a_right_alarm(
    again: Execution,
) -> None:
    checks.check_alarms()
    standing.raise_execution_alarm(again, AlarmKind.TWICE, clock.now(), fence=1)
    checks.check_alarms()


@pytest.mark.parametrize(
    ("kind", "fence"),
    [
        (AlarmKind.TWICE, 2),
        (AlarmKind.LATE_REPORT, 1),
        (AlarmKind.WITHOUT_GRANT, 1),
    ],
)
def test_any_other_alarm_is_a_fault(
    again: Execution, kind: AlarmKind, fence: int
) -> None:
    standing.raise_execution_alarm(again, kind, clock.now(), fence=fence)
    with pytest.raises(AssertionError):
        checks.check_alarms()


def test_what_differs_is_named() -> None:
    assert checks._other({1: "a", 2: "b"}, {1: "a", 2: "c", 3: "d"}) == {
        2: ("b", "c"),
        3: (None, "d"),
    }
