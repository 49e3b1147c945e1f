from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.choices import Role
from reviews import quorum
from reviews.quorum import StepData

ONE: StepData = {"role": "reviewer", "required": 1}
TWO: StepData = {"role": "supervisor", "required": 2}


@pytest.mark.parametrize(
    ("role", "step", "fills"),
    [
        ("reviewer", "reviewer", True),
        ("supervisor", "reviewer", True),
        ("supervisor", "supervisor", True),
        ("reviewer", "supervisor", False),
        ("auditor", "reviewer", False),
    ],
)
def test_who_fills_which_step(role: str, step: str, fills: bool) -> None:
    assert quorum.can_fill_step(role, step) is fills


def test_a_supervisor_takes_the_stricter_place_first() -> None:
    assert quorum.find_step_to_fill([ONE, TWO], [], Role.SUPERVISOR) == 1
    assert quorum.find_step_to_fill([ONE, TWO], [1, 1], Role.SUPERVISOR) == 0
    assert quorum.find_step_to_fill([ONE, TWO], [0, 1, 1], Role.SUPERVISOR) is None


def test_a_finished_step_is_dropped_when_authority_changes() -> None:
    assert quorum.list_unfinished_steps([ONE, TWO], [0, 1]) == [TWO]


@given(
    st.lists(
        st.tuples(st.sampled_from(["reviewer", "supervisor"]), st.integers(1, 3)),
        min_size=1,
        max_size=3,
    ),
    st.lists(st.sampled_from([Role.REVIEWER, Role.SUPERVISOR]), max_size=12),
)
def test_no_order_of_voters_leaves_a_fillable_place_empty(
    spec: list[tuple[str, int]], voters: list[Role]
) -> None:
    """Supervisors enough for every step always complete it, whoever came before."""
    steps: list[StepData] = [{"role": r, "required": n} for r, n in spec]
    given_: list[int] = []
    for role in [*voters, *[Role.SUPERVISOR] * 9]:
        step = quorum.find_step_to_fill(steps, given_, role)
        if step is not None:
            given_.append(step)
    assert quorum.is_complete(steps, given_)
    assert len(given_) == sum(step["required"] for step in steps)
