"""Redeems of one grant at once: one claim, given to every call with its key and to no
other; what a check took back is given to nobody, and what was given is not taken
back."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from journal import errors, log
from journal.models import LogRecord
from reviews.choices import ExecutionStatus, Scope
from reviews.executions import claims, leases, record
from reviews.executions.rechecks import Refusal
from reviews.executions.redeem import redeem_grant
from reviews.grants import tokens
from reviews.models import Execution
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.races.together import at_once, before

pytestmark = [pytest.mark.django_db(transaction=True)]
ROUNDS = 6


def deployment(gate: Gate, number: int = 1) -> tuple[Execution, partial[Any]]:
    request = propose(gate.agent, "deploy", args={"ref": f"v{number}"}).request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    token = tokens.load_token(execution.grant_id)
    return execution, partial(redeem_grant, token=token, agent="riley")


def claims_of(execution: Execution) -> int:
    kinds = ["execution.claimed", "execution.reclaimed"]
    rows = LogRecord.objects.filter(kind__in=kinds, proposal=execution.proposal_id)
    return rows.count()


def test_the_same_key_at_once_is_one_claim_for_all(gate: Gate) -> None:
    for number in range(ROUNDS):
        execution, redeem = deployment(gate, number)
        results = at_once(*[partial(redeem, key="mine")] * 6)
        assert [one.refusal for one in results] == [None] * 6
        told = {(r.value.fence, r.value.execution.lease_until) for r in results}
        assert len(told) == 1
        assert [r.value.replayed for r in results].count(False) == 1
        execution.refresh_from_db()
        assert (execution.fence, execution.attempts) == (1, 1)
        assert claims_of(execution) == 1


def test_of_different_keys_at_once_one_wins(gate: Gate) -> None:
    for number in range(ROUNDS):
        execution, redeem = deployment(gate, number)
        keys = ["one", "two", "three", "four", "", ""]
        results = at_once(*[partial(redeem, key=key) for key in keys])
        assert [r.won for r in results].count(True) == 1
        assert {type(r.refusal) for r in results if r.refusal} == {errors.GrantSpent}
        assert claims_of(execution) == 1


def stop(gate: Gate) -> None:
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="halt")


def test_what_a_repeated_call_was_given_is_not_taken_back(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop comes after the second call was answered, before the first is."""
    execution, redeem = deployment(gate)

    def answered_then_stopped() -> Any:
        claim = redeem(key="mine")
        stop(gate)
        return claim

    rival = before(
        monkeypatch, leases, "record_outside_database", answered_then_stopped
    )
    with pytest.raises(errors.AgentStopped):
        redeem(key="mine")
    assert rival.result.value.replayed
    execution.refresh_from_db()
    assert (execution.status, execution.fence) == (ExecutionStatus.CLAIMED, 1)
    assert execution.attempts == 1


@pytest.mark.parametrize("untouched", [True, False])
def test_what_was_taken_back_is_given_to_nobody(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, untouched: bool
) -> None:
    """The second call has passed every check when the first takes it back."""
    execution, redeem = deployment(gate)
    claim = claims.claim_execution(
        execution_id=execution.pk,
        actor=log.Actor("agent", "riley"),
        redeeming=True,
        key="mine",
    )
    assert claim is not None
    claim = replace(claim, untouched=untouched)
    stopped = Refusal("stopped", "This was stopped before it ran.")
    back = partial(record.release_claim, claim=claim, refusal=stopped)
    rival = before(monkeypatch, leases, "mark_handed_out", back)
    refusal = errors.AgentStopped if untouched else errors.GrantSpent
    with pytest.raises(refusal):
        redeem(key="mine")
    assert rival.result.won
    execution.refresh_from_db()
    assert execution.began_at is None
    assert execution.attempts == (1 if untouched else 0)


def test_a_lease_that_ends_during_the_checks_is_given_to_nobody(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, redeem = deployment(gate)
    lapse = partial(factories.lapsed, execution)
    before(monkeypatch, leases, "record_outside_database", lapse)
    with pytest.raises(errors.GrantSpent):
        redeem(key="mine")
    again = redeem(key="mine")
    assert (again.fence, again.replayed) == (2, False)
