"""What became of an attempt, written once."""

from __future__ import annotations

import pytest

from journal import errors, log
from policies.models import Observation
from reviews.choices import ExecutionStatus
from reviews.executions import claims, record, run, settle
from reviews.tool_services.executors import EffectOutcome
from tests import factories
from tests.conftest import Gate
from tests.reviews.executions.attempts import granted


def test_a_known_failure_is_failed_and_weighs_no_more(gate: Gate) -> None:
    execution = granted(gate, "decline")
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("failed", "declined")
    assert Observation.objects.filter(measure="event:failure").count() == 1


def test_a_stale_fence_cannot_record(gate: Gate) -> None:
    execution = granted(gate)
    first = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert first is not None
    with pytest.raises(errors.StaleFence):
        record.record_outcome(
            execution_id=execution.pk,
            fence=first.fence,
            outcome=EffectOutcome("succeeded", {}),
            actor=log.SYSTEM,
        )


def test_an_unknown_outcome_is_settled_by_a_supervisor(gate: Gate) -> None:
    execution = granted(gate, "pay_opaque")
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    run.run_execution(execution.pk)
    with pytest.raises(errors.NotPermitted):
        settle.settle_unknown(
            execution_id=execution.pk, person=gate.rita, happened=True, reason="seen"
        )
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=True, reason="seen"
    )
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED
