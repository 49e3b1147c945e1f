"""Many workers, one effect: the claim, its fence and the switches [I19, I22, I24]."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from journal import errors, log
from journal.models import LogRecord
from reviews import locks
from reviews.choices import ExecutionStatus, Scope, StopMode
from reviews.executions import claims, leases, rechecks, record, run
from reviews.executions import settle as settlements
from reviews.executions.redeem import redeem_grant
from reviews.grants import tokens
from reviews.models import Execution, Grant, Stop
from reviews.stops import stops
from reviews.tool_services import readers, verifiers
from reviews.tool_services.executors import EffectOutcome
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.races.together import at_once, before, elsewhere, while_held

pytestmark = [pytest.mark.django_db(transaction=True)]


def queued(gate: Gate, tool: str = "pay", number: int = 1) -> Execution:
    request = propose(gate.agent, tool, customer=f"C-{number}").request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def status_of(execution: Execution) -> str:
    return str(Execution.objects.get(pk=execution.pk).status)


def taking(execution: Execution) -> Callable[[], Any]:
    return partial(claims.claim_execution, execution_id=execution.pk, actor=log.SYSTEM)


@pytest.mark.parametrize("tool", ["pay", "pay_queryable", "pay_opaque"])
def test_of_many_workers_one_performs_the_effect(gate: Gate, tool: str) -> None:
    for number in range(5):
        execution = queued(gate, tool, number)
        at_once(*[partial(run.run_execution, execution.pk)] * 8)
        assert status_of(execution) == ExecutionStatus.SUCCEEDED
        claimed = LogRecord.objects.filter(
            kind="execution.claimed", proposal=execution.proposal_id
        )
        assert claimed.count() == 1
    assert len(worlds.effects()) == 5


def test_of_many_claims_one_is_given(gate: Gate) -> None:
    for number in range(8):
        execution = queued(gate, number=number)
        results = at_once(*[taking(execution)] * 8)
        given = [r.value for r in results if r.value is not None]
        assert [claim.fence for claim in given] == [1]


def test_a_claim_right_before_the_lock_leaves_nothing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = queued(gate)
    rival = before(monkeypatch, locks, "lock_execution", taking(execution))
    assert taking(execution)() is None
    assert rival.result.value.fence == 1


def test_a_claim_waits_for_the_rivals_commit(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = queued(gate)
    rival = while_held(monkeypatch, rechecks, "load_state", taking(execution))
    claim = taking(execution)()
    assert claim is not None
    assert rival.result.value is None


def test_a_lapsed_lease_is_taken_over_by_one(gate: Gate) -> None:
    for number in range(6):
        execution = queued(gate, number=number)
        taking(execution)()
        factories.lapsed(execution)
        results = at_once(*[taking(execution)] * 6)
        given = [r.value for r in results if r.value is not None]
        assert [claim.fence for claim in given] == [2]


def recording(execution: Execution, fence: int) -> Callable[[], Any]:
    return partial(
        record.record_outcome,
        execution_id=execution.pk,
        fence=fence,
        outcome=EffectOutcome("succeeded", {"fence": fence}),
        actor=log.SYSTEM,
    )


def test_a_record_against_a_take_over(gate: Gate) -> None:
    """The old holder records in time, or is stale; never both, never lost."""
    for number in range(12):
        execution = queued(gate, number=number)
        taking(execution)()
        factories.lapsed(execution)
        old, new = at_once(recording(execution, 1), taking(execution))
        assert old.won == (new.value is None)
        assert old.won or isinstance(old.refusal, errors.StaleFence)
        execution.refresh_from_db()
        if old.won:
            assert execution.status == ExecutionStatus.SUCCEEDED
        else:
            assert (execution.status, execution.fence) == (ExecutionStatus.CLAIMED, 2)


def test_who_slept_past_the_lease_writes_nothing(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T7: the worker stops for longer than its lease between effect and record; its
    successor has recorded meanwhile."""
    execution = queued(gate)

    def overtaken() -> None:
        factories.lapsed(execution)
        run.run_execution(execution.pk)

    before(monkeypatch, run, "_record_conclusion", overtaken)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.fence) == (ExecutionStatus.SUCCEEDED, 2)
    assert len(worlds.effects()) == 1
    succeeded = LogRecord.objects.filter(kind="execution.succeeded")
    assert succeeded.count() == 1


@pytest.mark.parametrize(
    ("tool", "status", "happened"),
    [
        ("pay", ExecutionStatus.SUCCEEDED, 1),
        ("pay_queryable", ExecutionStatus.SUCCEEDED, 1),
        ("pay_opaque", ExecutionStatus.UNKNOWN, 0),
    ],
)
def test_who_slept_before_the_effect_does_not_begin_it(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, tool: str, status: str, happened: int
) -> None:
    """T7, I19: a successor found nothing and did it, or gave it up as unknown; the one
    that wakes up does nothing any more."""
    execution = queued(gate, tool)

    def overtaken() -> None:
        factories.lapsed(execution)
        run.run_execution(execution.pk)

    before(monkeypatch, leases, "begin_attempt", overtaken)
    run.run_execution(execution.pk)
    assert status_of(execution) == status
    assert len(worlds.effects()) == happened


def stopping(gate: Gate, **scope: Any) -> Callable[[], Stop]:
    given = {"scope": Scope.EVERYTHING, "person": gate.adam, "reason": "halt", **scope}
    return partial(stops.create_stop, **given)


PLACES = [
    pytest.param(rechecks, "find_refusal", id="before-the-checks"),
    pytest.param(readers, "read_state", id="while-the-world-is-read"),
    pytest.param(verifiers, "run_verifiers", id="while-verifiers-are-asked"),
]


@pytest.mark.parametrize(("module", "name"), PLACES)
def test_a_stop_between_claim_and_effect_is_honoured(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, module: Any, name: str
) -> None:
    """I24: wherever between the two it comes."""
    document = factories.document_of_tests()
    rule = {"kind": "callable", "path": "reviews.verifier_rules.required_fields"}
    options = {"fields": ["customer"]}
    document["tools"]["pay"]["verifiers"] = [{**rule, "options": options}]
    factories.policy(gate.people, document)
    execution = queued(gate)
    claim = taking(execution)()
    assert claim is not None
    before(monkeypatch, module, name, stopping(gate))
    outcome = run._attempt_effect(claim)
    assert isinstance(outcome, rechecks.Refusal)
    assert worlds.effects() == []


def test_after_a_stop_is_acknowledged_nothing_begins(gate: Gate) -> None:
    """T23: whatever had not passed its last check by then does not happen."""
    rows = [queued(gate, number=number) for number in range(6)]
    runs = [partial(run.run_execution, row.pk) for row in rows]
    *_, stopped = at_once(*runs, stopping(gate))
    assert stopped.won
    for row in rows:
        run.run_execution(row.pk)
    statuses = [status_of(row) for row in rows]
    done = statuses.count(ExecutionStatus.SUCCEEDED)
    assert set(statuses) <= {ExecutionStatus.SUCCEEDED, ExecutionStatus.REFUSED}
    assert len(worlds.effects()) == done


def test_two_who_stop_the_same_thing_make_one_row(gate: Gate) -> None:
    calls = [stopping(gate, scope=Scope.AGENT, key="riley", person=gate.sue)] * 4
    results = at_once(*calls)
    assert [r.won for r in results].count(True) == 1
    assert {type(r.refusal) for r in results if r.refusal} == {errors.Conflict}
    assert Stop.objects.count() == 1


def test_two_who_lift_everything_at_once_are_still_two(gate: Gate) -> None:
    """One call asks; the other, by somebody else, lifts or comes too early."""
    for _ in range(5):
        row = stopping(gate)()
        lift = partial(stops.lift_stop, stop_id=row.pk, reason="fine")
        at_once(*[partial(lift, person=gate.alma)] * 3)
        row.refresh_from_db()
        assert row.lifted_at is None
        lift(person=gate.adam)
        row.refresh_from_db()
        assert row.lifted_at is not None


def test_an_agent_redeems_its_grant_once(gate: Gate) -> None:
    for number in range(5):
        request = propose(gate.agent, "deploy", args={"ref": f"v{number}"}).request
        decide(request, gate.sue)
        decide(request, gate.sam)
        token = tokens.load_token(Grant.objects.get(proposal=request.proposal_id).pk)
        redeem = partial(redeem_grant, token=token, agent="riley")
        results = at_once(*[redeem] * 6)
        assert [r.won for r in results].count(True) == 1
        assert {type(r.refusal) for r in results if r.refusal} == {errors.GrantSpent}


def test_of_two_who_settle_an_unknown_one_is_heard(gate: Gate) -> None:
    for number in range(5):
        execution = queued(gate, "pay_opaque", number)
        taking(execution)()
        factories.lapsed(execution)
        run.run_execution(execution.pk)
        settle = partial(
            settlements.settle_unknown, execution_id=execution.pk, reason="seen"
        )
        results = at_once(
            partial(settle, person=gate.sue, happened=True),
            partial(settle, person=gate.sam, happened=False),
        )
        assert [r.won for r in results].count(True) == 1
        expected = "succeeded" if results[0].won else "failed"
        assert status_of(execution) == expected


def test_a_pause_right_before_the_claim_keeps_it_queued(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = queued(gate)
    pause = stopping(gate, mode=StopMode.PAUSED)
    before(monkeypatch, rechecks, "load_state", pause)
    assert taking(execution)() is None
    assert status_of(execution) == ExecutionStatus.QUEUED
    assert elsewhere(taking(execution)).value is None
