"""The four numbers that lead the statistics while there is too little for curves."""

from __future__ import annotations

from dataclasses import dataclass

from stats.charts import format_seconds, format_share
from stats.plots.outcomes import CORRECTED, DECIDED, OUTCOMES, UNMODIFIED
from stats.plots.times_by_day import LATENCY
from stats.readings import MetricFilters, Rate, Times, load_readings

# From so many settled requests on, and of two days at least, a curve says more.
FEWEST_SETTLED, FEWEST_DAYS = 5, 2
_SETTLING = LATENCY["Opened to settled"]


@dataclass(frozen=True, slots=True)
class SummaryNumber:
    """One large number, what it counts, and a remark below it."""

    label: str
    value: str
    remark: str


def list_summary_numbers(period: MetricFilters) -> list[SummaryNumber]:
    """The numbers of a period that has few requests, or those of one day; none for any
    other period. Two queries."""
    readings = load_readings(period, [OUTCOMES, _SETTLING])
    bins = readings.bins(OUTCOMES)
    days = [day for day, counts in readings.daily(OUTCOMES).items() if counts]
    settled = sum(bins.values())
    if settled >= FEWEST_SETTLED and len(days) >= FEWEST_DAYS:
        return []
    decided = sum(bins.get(name, 0) for name in DECIDED)
    unmodified = sum(bins.get(name, 0) for name in UNMODIFIED)
    corrected = sum(bins.get(name, 0) for name in CORRECTED)
    times = Times(readings.bins(_SETTLING))
    return [
        SummaryNumber(
            "Decided by people", f"{decided:,}", f"{bins.get('expired', 0):,} expired"
        ),
        SummaryNumber(
            "Approved as proposed",
            f"{unmodified:,}",
            _describe_share(unmodified, decided),
        ),
        SummaryNumber(
            "Rejected or changed", f"{corrected:,}", _describe_share(corrected, decided)
        ),
        SummaryNumber(
            "Median time to settle",
            format_seconds(times.median),
            "from the request to its end",
        ),
    ]


def _describe_share(count: int, total: int) -> str:
    if not total:
        return "nothing decided yet"
    return f"{format_share(Rate(count, total).share)} of those decided"
