"""A day's figures follow the log, late events and repeated runs included."""

from __future__ import annotations

from datetime import UTC, timedelta

import pytest

from agents import proposals
from agents.choices import ThreadResult
from journal import clock
from reviews.metrics import rollups
from reviews.metrics.plots import outcome_mix, rejection_recovery
from reviews.metrics.readings import MetricFilters, load_readings
from reviews.models import ApprovalRequest, MetricDay, MetricRollup
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.journal import history

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


def update() -> None:
    """What happens in a minute: the log gets its order, and the sweep runs."""
    history.place_records()
    rollups.update_rollups()


def read_days() -> MetricFilters:
    today = clock.now().astimezone(UTC).date()
    return MetricFilters("", "", today - AGO, today)


def read_recovery() -> dict[str, int]:
    measure = rejection_recovery.REJECTED
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
    columns = ("day", "measure", "tool", "risk", "bin", "value")
    found = sorted(MetricRollup.objects.values_list(*columns))
    assert found
    MetricDay.objects.update(due=True)
    update()
    assert sorted(MetricRollup.objects.values_list(*columns)) == found


def test_a_quiet_day_has_figures_of_what_waits(
    gate: Gate, rejected: ApprovalRequest
) -> None:
    """Nothing was logged on the two days between, and each is computed once."""
    days = MetricDay.objects.order_by("day").values_list("day", "due")
    assert list(days) == [(day, day == read_days().last) for day in read_days().days]


def test_all_tools_and_risk_levels_are_rows_of_their_own(
    rejected: ApprovalRequest,
) -> None:
    rows = MetricRollup.objects.filter(measure=outcome_mix.OUTCOMES.name)
    found = set(rows.values_list("tool", "risk", "bin", "value"))
    assert found == {
        (tool, risk, "rejected", 1) for tool in ("", "pay") for risk in ("", "high")
    }
