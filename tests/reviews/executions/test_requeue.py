"""Whether there is a next attempt."""

from __future__ import annotations

import pytest

from journal import clock, log
from reviews.choices import ExecutionStatus, Scope, StopMode
from reviews.executions import claims, run, settle
from reviews.models import Execution
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.reviews.executions.attempts import MOST_ATTEMPTS, flaky, granted


def test_a_person_retries_a_known_failure_under_the_same_key(gate: Gate) -> None:
    execution = granted(gate, "decline")
    run.run_execution(execution.pk)
    settle.retry_execution(execution_id=execution.pk, person=gate.sue)
    execution.refresh_from_db()
    key = execution.idempotency_key
    assert execution.status == ExecutionStatus.QUEUED
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.idempotency_key, execution.attempts) == (key, 2)


def test_a_paused_thread_keeps_its_execution_queued(gate: Gate) -> None:
    execution = granted(gate)
    stop = stops.create_stop(
        scope=Scope.THREAD,
        key="riley/t-1",
        mode=StopMode.PAUSED,
        person=gate.rita,
        reason="look first",
    )
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.QUEUED
    stops.lift_stop(stop_id=stop.pk, person=gate.sue, reason="fine")
    run.run_execution(execution.pk)
    assert len(worlds.effects()) == 1


def test_a_pause_does_not_wear_out_what_a_dead_worker_left(gate: Gate) -> None:
    execution = granted(gate)
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    row = stops.create_stop(
        scope=Scope.TOOL,
        key="pay",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="wait",
    )
    for _ in range(MOST_ATTEMPTS):
        run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.attempts) == ("claimed", 1)
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="go on")
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


def test_a_failure_that_may_be_tried_again_is_with_back_off_and_a_cap(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `decline` declares: three attempts, ten seconds apart, then fifteen."""
    monkeypatch.setattr(worlds, "failing", flaky)
    execution = granted(gate, "decline")
    waits = []
    for _ in range(2):
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert execution.status == ExecutionStatus.QUEUED
        waits.append((execution.due_at - clock.now()).total_seconds())
        run.run_execution(execution.pk)
        assert execution.attempts == len(waits), "and not before it is due"
        Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert [round(one) for one in waits] == [10, 15]
    assert (execution.status, execution.attempts) == (ExecutionStatus.FAILED, 3)


def test_what_merely_failed_is_not_tried_again_by_itself(gate: Gate) -> None:
    execution = granted(gate, "decline")
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.attempts) == (ExecutionStatus.FAILED, 1)
