"""Who takes an execution: what an agent redeems, and that nobody else takes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from journal import errors
from reviews.choices import ExecutionStatus, Scope, StopMode
from reviews.executions import claims, redeem, run
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.reviews.executions.attempts import MOST_ATTEMPTS, deployment

SWITCHES = [
    (StopMode.PAUSED, errors.Conflict),
    (StopMode.STOPPED, errors.AgentStopped),
]


def test_the_agent_redeems_once(gate: Gate) -> None:
    _, token = deployment(gate)
    claim = redeem.redeem_grant(token=token, agent="riley")
    assert claim.call.args == {"ref": "v1"}
    with pytest.raises(errors.GrantSpent):
        redeem.redeem_grant(token=token, agent="riley")
    with pytest.raises(errors.NotFound):
        redeem.redeem_grant(token=token, agent="somebody-else")


def test_after_a_lapsed_lease_the_agent_redeems_again(gate: Gate) -> None:
    execution, token = deployment(gate)
    first = redeem.redeem_grant(token=token, agent="riley")
    factories.lapsed(execution)
    again = redeem.redeem_grant(token=token, agent="riley")
    assert again.fence == first.fence + 1
    assert again.call.idempotency_key == first.call.idempotency_key


def switch(gate: Gate, mode: StopMode) -> Callable[[], object]:
    """Switch the tool off; call what is returned to switch it on again."""
    row = stops.create_stop(
        scope=Scope.TOOL, key="deploy", mode=mode, person=gate.sue, reason="wait"
    )
    return partial(stops.lift_stop, stop_id=row.pk, person=gate.sam, reason="go on")


@pytest.mark.parametrize(("mode", "refusal"), SWITCHES)
def test_a_redeem_that_a_switch_refuses_is_no_attempt(
    gate: Gate, mode: StopMode, refusal: type[errors.DomainError]
) -> None:
    execution, token = deployment(gate)
    first = redeem.redeem_grant(token=token, agent="riley")
    factories.lapsed(execution)
    lift = switch(gate, mode)
    for _ in range(MOST_ATTEMPTS):
        with pytest.raises(refusal):
            redeem.redeem_grant(token=token, agent="riley")
    lift()
    if mode is StopMode.STOPPED:
        with pytest.raises(errors.PreconditionFailed, match="needs a new approval"):
            redeem.redeem_grant(token=token, agent="riley")
        return
    again = redeem.redeem_grant(token=token, agent="riley")
    assert (again.fence, again.execution.attempts) == (first.fence + 1, 2)


@pytest.mark.parametrize(("mode", "refusal"), SWITCHES)
@pytest.mark.parametrize("lapsed", [False, True])
def test_a_switch_that_comes_during_a_redeem_takes_no_attempt(
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    mode: StopMode,
    refusal: type[errors.DomainError],
    lapsed: bool,
) -> None:
    execution, token = deployment(gate)
    if lapsed:
        redeem.redeem_grant(token=token, agent="riley")
        factories.lapsed(execution)
    take = claims.claim_execution

    def take_then_switch(**given: Any) -> Any:
        claim = take(**given)
        switch(gate, mode)
        return claim

    monkeypatch.setattr(claims, "claim_execution", take_then_switch)
    with pytest.raises(refusal):
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    refused = mode is StopMode.STOPPED and not lapsed
    assert execution.status == (
        "refused" if refused else "claimed" if lapsed else "queued"
    )
    assert execution.attempts == (1 if lapsed or refused else 0)


def test_no_worker_takes_what_the_agent_performs(gate: Gate) -> None:
    execution, _ = deployment(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.QUEUED
