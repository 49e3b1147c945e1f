"""A day's figures follow the log, late events and repeated runs included."""

from __future__ import annotations

import json
from datetime import UTC, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agents import proposals
from agents.choices import ThreadResult
from journal import clock
from reviews.decisions import recall
from reviews.models import ApprovalRequest, Decision, MetricDay, MetricRollup
from stats import rollups
from stats.plots import list_measures, outcomes, rates_by_day, times_by_day
from stats.readings import MetricFilters, load_readings
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.journal import history
from tests.reviews import states

pytestmark = pytest.mark.django_db
AGO = timedelta(days=3)


@pytest.fixture
def rejected(gate: Gate) -> ApprovalRequest:
    """A request that was rejected three days ago, as the statistics know it."""
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject")
    past = clock.now() - AGO
    ApprovalRequest.objects.filter(pk=request.pk).update(settled_at=past)
    update()
    return request


def update(took_ms: int = 0) -> None:
    """What happens in a minute: the log gets its order, and the sweep runs, after one
    that took this long for each day."""
    MetricDay.objects.update(took_ms=took_ms)
    history.place_records()
    rollups.update_rollups()


def read_days() -> MetricFilters:
    today = clock.now().astimezone(UTC).date()
    return MetricFilters("", "", today - AGO, today)


def read_recovery() -> dict[str, int]:
    measure = rates_by_day.REJECTED
    return load_readings(read_days(), [measure]).bins(measure)


def test_a_late_event_computes_its_day_again(
    gate: Gate, rejected: ApprovalRequest
) -> None:
    assert read_recovery() == {"rejected": 1, "running": 1}
    day = MetricDay.objects.get(day=read_days().first)
    assert not day.due
    proposals.finish_thread(agent=gate.agent, name="t-1", result=ThreadResult.COMPLETED)
    update()
    assert read_recovery() == {"rejected": 1, "completed": 1}
    again = MetricDay.objects.get(day=day.day)
    assert (again.due, again.through > day.through) == (False, True)


def test_a_repeated_run_changes_nothing(rejected: ApprovalRequest) -> None:
    rows = MetricRollup.objects.order_by("day", "measure", "tool", "risk")
    columns = ("day", "measure", "tool", "risk", "bins")
    found = list(rows.values_list(*columns))
    assert found
    MetricDay.objects.update(due=True)
    update()
    assert list(rows.values_list(*columns)) == found


def test_a_quiet_day_has_figures_of_what_waits(
    gate: Gate, rejected: ApprovalRequest
) -> None:
    """Nothing was logged on the two days between, and each is computed once."""
    days = MetricDay.objects.order_by("day").values_list("day", "due")
    assert list(days) == [(day, day == read_days().last) for day in read_days().days]


def test_all_tools_and_risk_levels_are_rows_of_their_own(
    rejected: ApprovalRequest,
) -> None:
    rows = MetricRollup.objects.filter(measure=outcomes.OUTCOMES.name)
    found = {
        (tool, risk): json.loads(bins)
        for tool, risk, bins in rows.values_list("tool", "risk", "bins")
    }
    assert found == {
        (tool, risk): {"rejected": 1} for tool in ("", "pay") for risk in ("", "high")
    }


def test_a_day_that_took_long_rests(gate: Gate, rejected: ApprovalRequest) -> None:
    proposals.finish_thread(agent=gate.agent, name="t-1", result=ThreadResult.COMPLETED)
    update(took_ms=600_000)
    assert read_recovery() == {"rejected": 1, "running": 1}
    update()
    assert read_recovery() == {"rejected": 1, "completed": 1}


def test_a_mark_while_a_day_is_computed_keeps_it_due(
    rejected: ApprovalRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = MetricDay.objects.get(day=read_days().first)
    store = rollups.store_day

    def mark_first(**facts: Any) -> bool:
        MetricDay.objects.filter(day=day.day).update(through=day.through + 1)
        return store(**facts)

    monkeypatch.setattr(rollups, "store_day", mark_first)
    MetricDay.objects.filter(day=day.day).update(due=True)
    assert rollups.compute_day(day=day.day)
    assert MetricDay.objects.get(day=day.day).due


def test_figures_are_read_before_anything_is_written(
    rejected: ApprovalRequest,
) -> None:
    """The log gets no order while a writing transaction is open."""
    MetricDay.objects.update(due=True)
    with CaptureQueriesContext(connection) as caught:
        rollups.compute_day(day=read_days().first)
    sent = [query["sql"] for query in caught.captured_queries]
    begins = next(at for at, sql in enumerate(sent) if sql.startswith("SAVEPOINT"))
    assert begins > len(list_measures())
    assert not any("fact (tool, risk, bin, value)" in sql for sql in sent[begins:])


def read_times() -> int:
    """How many decisions have a time in these days."""
    measure = times_by_day.DECISION_TIMES
    return sum(load_readings(read_days(), [measure]).bins(measure).values())


def test_a_recall_takes_the_decision_out_of_the_day_before(gate: Gate) -> None:
    request = states.recallable(gate)
    decision = Decision.objects.get()
    yesterday = clock.now() - timedelta(days=1)
    worlds.rewrite(Decision, decision.pk, at=yesterday, took_ms=3000)
    update()
    MetricDay.objects.get_or_create(day=yesterday.date())
    MetricDay.objects.update(due=True)
    update()
    assert read_times() == 1
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    update()
    assert read_times() == 0
