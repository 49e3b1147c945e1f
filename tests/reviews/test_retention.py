"""What services answered is erased when it is old; that it was, stands in the log."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from hitl import tasks
from journal import clock, log
from journal.models import LogRecord
from reviews import retention
from reviews.executions import run
from reviews.models import Execution
from tests.conftest import Gate
from tests.races.together import before
from tests.reviews.executions.attempts import granted

ERASED = "execution.result_erased"


def answered(gate: Gate, *, days: int) -> Execution:
    """An effect whose service answered so many days ago."""
    execution = granted(gate, "pay_queryable")
    run.run_execution(execution.pk)
    at = clock.now() - timedelta(days=days)
    Execution.objects.filter(pk=execution.pk).update(finished_at=at)
    execution.refresh_from_db()
    assert execution.result is not None
    return execution


@pytest.mark.django_db
def test_an_old_answer_is_erased_once_and_its_digest_stays(
    gate: Gate, settings: Any
) -> None:
    keep = settings.COUNTERSEAL.keep_results_days
    old, young = answered(gate, days=keep + 1), answered(gate, days=keep - 1)
    digest = old.result_digest
    assert (tasks.prune(), tasks.prune()) == (1, 0)
    for one in (old, young):
        one.refresh_from_db()
    assert (old.result, old.result_shown, old.result_digest) == (None, None, digest)
    assert young.result is not None
    record = LogRecord.objects.get(kind=ERASED)
    assert record.proposal == old.proposal_id


@pytest.mark.django_db(transaction=True)
def test_two_sweeps_at_once_say_it_once(
    gate: Gate, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        answered(gate, days=settings.COUNTERSEAL.keep_results_days + 1)
    rival = before(monkeypatch, log, "append_many", retention.erase_results)
    assert (retention.erase_results(), rival.result.value) == (3, 0)
    assert LogRecord.objects.filter(kind=ERASED).count() == 3
