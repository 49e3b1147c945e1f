"""Stored figures for one filter and period, and the statistics made of them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from django.db import connection
from pydantic_core import from_json

from policies.choices import Risk

from .measures import Measure, find_percentiles

FEW = 20  # a rate of fewer cases is marked "few", and its dot is hollow
Bins = dict[str, int]


@dataclass(frozen=True, slots=True)
class MetricFilters:
    """A tool, a risk level (empty: all) and a period of whole UTC days."""

    tool: str
    risk: str
    first: date
    last: date

    @property
    def days(self) -> list[date]:
        count = (self.last - self.first).days + 1
        return [self.first + timedelta(days=n) for n in range(count)]


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of so many."""

    count: int
    total: int

    @property
    def share(self) -> float | None:
        """None where nothing was counted."""
        return self.count / self.total if self.total else None

    @property
    def few(self) -> bool:
        return self.total < FEW

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % score interval (Wilson 1927); None where nothing was counted."""
        if not self.total:
            return None
        z, n, share = 1.959963984540054, self.total, self.count / self.total
        middle = share + z * z / (2 * n)
        spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        whole = 1 + z * z / n
        return max((middle - spread) / whole, 0.0), min((middle + spread) / whole, 1.0)


class Times:
    """The size, the median and the p90 of a histogram of seconds."""

    __slots__ = ("median", "p90", "total")

    def __init__(self, counts: Mapping[str, int]) -> None:
        self.total = sum(counts.values())
        self.median, self.p90 = find_percentiles(counts, (0.5, 0.9))


@dataclass(slots=True)
class Readings:
    """The figures of some measures: per day for the chosen tool and risk level, and for
    each tool and risk level over the whole period."""

    filters: MetricFilters
    # measure -> risk level ("" for the chosen one) -> day -> bins
    _daily: dict[str, dict[str, dict[date, Bins]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    # measure -> (tool, risk level) -> bins
    _slices: dict[str, dict[tuple[str, str], Bins]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def bins(self, measure: Measure) -> Bins:
        """The figures of the whole period."""
        return measure.add_bins(self.daily(measure).values())

    def daily(self, measure: Measure) -> dict[date, Bins]:
        """The figures of each day; a day without any is not there."""
        return self._daily[measure.name][self.filters.risk]

    def daily_of_risk(self, measure: Measure, risk: Risk) -> dict[date, Bins]:
        """The same for one risk level, for a measure of `Plot.by_risk`."""
        return self._daily[measure.name][risk]

    def by_tool(self, measure: Measure) -> dict[str, Bins]:
        """The figures of each tool, for a measure of `Plot.sliced`."""
        return {
            tool: bins
            for (tool, risk), bins in sorted(self._slices[measure.name].items())
            if tool and risk == self.filters.risk
        }

    def by_tool_and_risk(self, measure: Measure) -> dict[tuple[str, Risk], Bins]:
        """The figures of each tool at each risk level, for one of `Plot.sliced`."""
        order = list(Risk)
        slices = {
            (tool, Risk(risk)): bins
            for (tool, risk), bins in self._slices[measure.name].items()
            if tool and risk
        }
        keys = sorted(slices, key=lambda key: (key[0], order.index(key[1])))
        return {key: slices[key] for key in keys}


_DAILY = """
SELECT measure, risk, day, bins FROM reviews_metricrollup
WHERE measure = ANY (%(measures)s) AND tool = %(tool)s AND risk = ANY (%(risks)s)
  AND day BETWEEN %(first)s AND %(last)s
"""
_SLICES = """
SELECT measure, tool, risk, bins FROM reviews_metricrollup
WHERE measure = ANY (%(measures)s) AND tool <> ''
  AND (%(tool)s = '' OR tool = %(tool)s)
  AND (risk = %(risk)s OR %(risk)s = '' AND measure = ANY (%(crossed)s))
  AND day BETWEEN %(first)s AND %(last)s
"""


def load_readings(
    filters: MetricFilters,
    measures: Iterable[Measure],
    sliced: Iterable[Measure] = (),
    by_risk: Iterable[Measure] = (),
) -> Readings:
    """Load the figures of these measures, in at most three queries."""
    readings = Readings(filters)
    split = {measure.name for measure in by_risk}
    whole = {measure.name for measure in measures} - split
    _add_daily(readings, sorted(whole), [filters.risk])
    _add_daily(readings, sorted(split), sorted({filters.risk, *Risk}))
    cut = {measure.name: measure for measure in sliced}
    crossed = sorted(measure.name for measure in cut.values() if measure.crossed)
    parts: dict[tuple[str, str, str], list[Bins]] = defaultdict(list)
    rows = _fetch_rows(_SLICES, filters, sorted(cut), crossed=crossed)
    for name, tool, risk, bins in rows:
        parts[name, tool, risk].append(from_json(bins))
    for (name, tool, risk), several in parts.items():
        readings._slices[name][tool, risk] = cut[name].add_bins(several)
    return readings


def _add_daily(readings: Readings, names: Sequence[str], risks: Sequence[str]) -> None:
    rows = _fetch_rows(_DAILY, readings.filters, names, risks)
    for name, risk, day, bins in rows:
        readings._daily[name][risk][day] = from_json(bins)


def _fetch_rows(
    sql: str,
    filters: MetricFilters,
    names: Sequence[str],
    risks: Sequence[str] = (),
    crossed: Sequence[str] = (),
) -> list[tuple[Any, ...]]:
    if not names:
        return []
    values: dict[str, Any] = {
        "measures": list(names),
        "tool": filters.tool,
        "risk": filters.risk,
        "first": filters.first,
        "last": filters.last,
        "risks": [str(risk) for risk in risks],
        "crossed": list(crossed),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())
