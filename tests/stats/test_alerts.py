"""Alerts of the policy: an alarm while a rate crosses a threshold, for a supervisor."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest

from journal import clock
from policies.documents import InvalidPolicy
from policies.documents.alerts import AlertFigure
from reviews.alarms import standing
from reviews.models import Alarm, MetricRollup
from stats import alerts
from tests import factories
from tests.conftest import Gate

pytestmark = pytest.mark.django_db


def count(bin_: str, value: int, *, tool: str = "pay", risk: str = "high") -> None:
    """So many outcomes of today."""
    keys = {"day": clock.now().date(), "measure": "outcomes", "tool": tool}
    row, _ = MetricRollup.objects.get_or_create(
        **keys, risk=risk, defaults={"bins": "{}"}
    )
    row.bins = json.dumps({**json.loads(row.bins), bin_: value})
    row.save()


def adopt(gate: Gate, *found: dict[str, Any]) -> None:
    """The tests' policy with these alerts."""
    document = factories.document_of_tests() | {"alerts": list(found)}
    factories.policy(gate.people, document)


def list_alarms(**fields: Any) -> list[str]:
    rows = Alarm.objects.filter(kind=alerts.KIND, **fields).order_by("subject")
    return list(rows.values_list("subject", flat=True))


def test_both_usual_alerts_count_each_tool_and_risk_level(gate: Gate) -> None:
    count("approved", 191)
    count("modified", 9)
    count("approved", 199, risk="low")  # one too few
    count("approved", 9, tool="tag")
    count("rejected", 11, tool="tag")
    assert alerts.sweep_alerts() == 2
    above, below = (
        "unmodified_approval above pay high",
        "unmodified_approval below tag high",
    )
    assert list_alarms(status="open") == [above, below]
    found = Alarm.objects.get(subject=above)
    assert found.data == {
        "figure": "unmodified approval",
        "tool": "pay",
        "risk": "high",
        "rate": "95.5 %",
        "count": 191,
        "total": 200,
        "threshold": "above 95 %",
        "days": 30,
    }
    assert alerts.sweep_alerts() == 0
    count("rejected", 5)
    assert alerts.sweep_alerts() == 1
    assert list_alarms(closed_how="itself") == [above]


def test_an_alarm_that_a_person_closed_stays_closed(gate: Gate) -> None:
    count("rejected", 20)
    assert alerts.sweep_alerts() == 1
    alarm = Alarm.objects.get(kind=alerts.KIND)
    standing.close_alarm(alarm_id=alarm.pk, person=gate.sue, note="a new agent")
    assert alerts.sweep_alerts() == 0


def test_the_policy_says_which_figure_tool_and_risk_level(gate: Gate) -> None:
    adopt(
        gate,
        {"figure": "correction_rate", "tools": ["pay"], "risk": ["high"], "above": 0.1},
    )
    for tool in ("pay", "tag"):
        count("approved", 40, tool=tool)
        count("rejected", 10, tool=tool)
    count("rejected", 30, risk="low")
    assert alerts.sweep_alerts() == 1
    assert list_alarms() == ["correction_rate above pay high"]
    adopt(gate)
    assert alerts.sweep_alerts() == 1
    assert list_alarms(status="closed") == ["correction_rate above pay high"]


@pytest.mark.parametrize(
    ("alert", "said"),
    [
        ({"above": 0.1, "tools": ["pya"]}, "pay"),
        ({}, "set either above or below"),
        ({"above": 0.1, "below": 0.2}, "set either above or below"),
        ({"above": 95}, "less than or equal to 1"),
    ],
)
def test_an_alert_with_a_mistake_is_refused(
    gate: Gate, alert: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidPolicy) as refused:
        adopt(gate, {"figure": "correction_rate", **alert})
    (problem,) = refused.value.errors
    assert str(problem["path"]).startswith("alerts.0")
    assert said in str(problem["message"])


def test_each_figure_of_the_policy_is_a_rate() -> None:
    assert set(get_args(AlertFigure)) == set(alerts.FIGURES)
