"""Item after item runs; a failure keeps the rest, until a person says so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from journal import clock, errors
from reviews import deadlines
from reviews.batches import follow_up
from reviews.choices import ExecutionStatus
from reviews.executions import run
from reviews.models import Batch, Execution
from tests import worlds
from tests.conftest import Gate
from tests.reviews import states
from tests.reviews.batches.batching import decide, formed, ran


def failing(gate: Gate, *customers: str) -> Batch:
    worlds.WORLD["declined"] = set(customers)
    return decide(formed(gate, *["7.00"] * 5), gate.rita)


def test_the_first_failure_keeps_the_rest_from_running(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    done, no, waits = "succeeded", "failed", "queued"
    assert ran(batch) == [done, no, waits, waits, waits]
    batch.refresh_from_db()
    assert batch.halted_at is not None
    assert deadlines.list_overdue_executions(quiet=timedelta(0)) == []


def test_the_rest_runs_when_a_person_says_so(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    ran(batch)
    follow_up.run_rest(batch_id=batch.pk, person=gate.tom)
    assert ran(batch) == ["succeeded", "failed", *["succeeded"] * 3]
    with pytest.raises(errors.Conflict):
        follow_up.run_rest(batch_id=batch.pk, person=gate.tom)


def test_only_what_failed_is_tried_again_under_the_same_key(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    ran(batch)
    keys = {key for _, key, _ in worlds.effects()}
    worlds.WORLD["declined"] = set()
    assert follow_up.retry_failed(batch_id=batch.pk, person=gate.rita) == 1
    assert ran(batch) == ["succeeded"] * 5
    assert len(worlds.effects()) == 5
    assert keys < {key for _, key, _ in worlds.effects()}


def test_without_stopping_every_item_runs(gate: Gate) -> None:
    worlds.WORLD["declined"] = {"C-1"}
    batch = decide(formed(gate, *["7.00"] * 5), gate.rita, stop_at_failure=False)
    assert ran(batch) == ["succeeded", "failed", *["succeeded"] * 3]


def test_what_waits_behind_a_failure_never_runs_after_its_window(gate: Gate) -> None:
    batch = failing(gate, "C-0")
    ran(batch)
    past = clock.now() - timedelta(seconds=1)
    for execution in Execution.objects.filter(batch=batch):
        type(execution.grant).objects.filter(pk=execution.grant_id).update(
            expires_at=past
        )
    assert ran(batch) == ["failed", *["refused"] * 4]
    with pytest.raises(errors.GrantExpired):
        follow_up.retry_failed(batch_id=batch.pk, person=gate.rita)


def test_strangers_neither_recall_nor_run_nor_retry(gate: Gate) -> None:
    batch = failing(gate, "C-1")
    ran(batch)
    for operation in (follow_up.run_rest, follow_up.retry_failed):
        with pytest.raises(errors.NotPermitted):
            operation(batch_id=batch.pk, person=gate.otto)
        with pytest.raises(errors.NotFound):
            operation(batch_id="b-0", person=gate.rita)


def test_an_execution_outside_any_batch_waits_for_nobody(gate: Gate) -> None:
    batch = failing(gate, "C-0")
    ran(batch)
    alone = states.queued(gate)
    assert deadlines.list_overdue_executions(quiet=timedelta(0)) == [alone.pk]
    run.run_execution(alone.pk)
    alone.refresh_from_db()
    assert alone.status == ExecutionStatus.SUCCEEDED
