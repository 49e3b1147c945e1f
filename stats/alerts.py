"""The alerts of the policy: an alarm when a rate of the statistics crosses a threshold,
for one tool at one risk level, until the rate is back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from journal import clock, sweeps
from journal.operations import operation
from policies import active
from policies.documents import Alert
from reviews.alarms import standing
from reviews.choices import AlarmKind, ClosedHow
from reviews.models import Alarm
from reviews.models.alarms import STANDING

from .measures import Measure
from .plots import outcomes, rates_by_day, regret
from .readings import MetricFilters, Rate, load_readings
from .series import MakeRate

KIND = AlarmKind.THRESHOLD
# The measure and the rate behind each figure that a policy may watch.
FIGURES: dict[str, tuple[Measure, MakeRate]] = {
    "unmodified_approval": (outcomes.OUTCOMES, outcomes.make_unmodified_rate),
    "correction_rate": (outcomes.OUTCOMES, rates_by_day.CORRECTION.make_rate),
    "expired_requests": (outcomes.OUTCOMES, outcomes.make_expired_rate),
    "missed_in_flood": (rates_by_day.MISSED, rates_by_day.FLOOD.make_rate),
    "fast_decisions": (rates_by_day.TIMED, rates_by_day.FAST.make_rate),
    "flagged_approval": (rates_by_day.FLAGGED, rates_by_day.UNCHANGED.make_rate),
    "regret": (regret.EXECUTED, regret.make_rate),
}


@dataclass(frozen=True, slots=True)
class CrossedAlert:
    """An alert whose threshold the rate of one tool and risk level crosses."""

    alert: Alert
    tool: str
    risk: str
    rate: Rate

    @property
    def subject(self) -> str:
        """What the alarm is about: one figure, side, tool and risk level."""
        side = "above" if self.alert.above is not None else "below"
        return f"{self.alert.figure} {side} {self.tool} {self.risk}"

    @property
    def facts(self) -> dict[str, Any]:
        """The facts on the alarm's page."""
        alert = self.alert
        side = "above" if alert.above is not None else "below"
        limit = alert.above if alert.above is not None else alert.below
        return {
            "figure": alert.figure.replace("_", " "),
            "tool": self.tool,
            "risk": self.risk,
            "rate": f"{(self.rate.share or 0) * 100:.1f} %",
            "count": self.rate.count,
            "total": self.rate.total,
            "threshold": f"{side} {(limit or 0) * 100:g} %",
            "days": alert.days,
        }


def sweep_alerts() -> int:
    """Raise an alarm for each alert that is crossed, and close those that no longer
    are. Returns how many changed. Concurrent runs are safe."""
    now = clock.now()
    crossed = {alert.subject: alert for alert in list_crossed_alerts(now)}
    rows = Alarm.objects.filter(kind=KIND)
    open_ones = set(rows.filter(STANDING).values_list("subject", flat=True))
    quiet = _list_closed_lately(crossed, now)
    new = sorted(crossed.keys() - open_ones - quiet)[: standing.CHUNK]
    over = sorted(open_ones - crossed.keys())[: standing.CHUNK]
    return sweeps.run_each(
        lambda subject: raise_alert(crossed[subject]), new
    ) + sweeps.run_each(lambda subject: close_alert(subject=subject), over)


def list_crossed_alerts(now: datetime) -> Iterator[CrossedAlert]:
    """The alerts of the active policy that are crossed; the first of a subject counts.
    None without an active policy."""
    version = active.find_active_policy()
    if version is None:
        return
    seen: set[str] = set()
    for alert in active.load_document(version).alerts:
        for crossed in _list_crossed(alert, now.astimezone(UTC).date()):
            if crossed.subject not in seen:
                seen.add(crossed.subject)
                yield crossed


def _list_crossed(alert: Alert, today: date) -> Iterator[CrossedAlert]:
    measure, make_rate = FIGURES[alert.figure]
    period = MetricFilters("", "", today - timedelta(days=alert.days - 1), today)
    slices = load_readings(period, [], [measure]).by_tool_and_risk(measure)
    for (tool, risk), bins in slices.items():
        rate = make_rate(bins)
        if alert.concerns(tool, risk) and alert.is_crossed(rate.count, rate.total):
            yield CrossedAlert(alert, tool, risk, rate)


def _list_closed_lately(crossed: dict[str, CrossedAlert], now: datetime) -> set[str]:
    """The subjects whose alarm a person closed within the alert's own period: the same
    cases are still counted, and the person knows of them."""
    closed = Alarm.objects.filter(
        kind=KIND, subject__in=crossed, closed_how=ClosedHow.PERSON
    ).values_list("subject", "closed_at")
    return {
        subject
        for subject, at in closed
        if at is not None and at > now - timedelta(days=crossed[subject].alert.days)
    }


@operation(locks="alarm", writes="Alarm", logs="alarm.raised", after="mail")
def raise_alert(crossed: CrossedAlert) -> bool:
    """Raise the alarm, which supervisors are notified of. Returns True."""
    standing.raise_alarm(
        KIND,
        subject=crossed.subject,
        proposal=None,
        data=crossed.facts,
        now=clock.now(),
    )
    return True


@operation(locks="alarm", writes="Alarm", logs="alarm.closed")
def close_alert(*, subject: str) -> bool:
    """Close the alarm of a rate that is back. Returns whether it was open."""
    return standing.close_resolved_alarm(
        KIND, subject=subject, now=clock.now(), code="back_within_threshold"
    )
