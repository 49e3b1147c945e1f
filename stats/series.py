"""Series and tables that several plots share: rates and times per day and per tool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from .charts import (
    Cell,
    Chart,
    Dot,
    DotPanel,
    Line,
    LinePanel,
    Point,
    Unit,
    format_rate,
    format_seconds,
    list_places,
)
from .measures import SEPARATOR, Measure
from .readings import Bins, MetricFilters, Rate, Readings, Times

MakeRate = Callable[[Mapping[str, int]], Rate]


def build_rate_maker(counted: Iterable[str], of: Iterable[str]) -> MakeRate:
    """The rate of some bins among others."""
    upper, lower = tuple(counted), tuple(of)

    def make_rate(bins: Mapping[str, int]) -> Rate:
        return Rate(
            sum(bins.get(name, 0) for name in upper),
            sum(bins.get(name, 0) for name in lower),
        )

    return make_rate


def build_rates(
    bins: Mapping[str, int], counted: str, of: str, names: Iterable[str]
) -> dict[str, Rate]:
    """The rate of each name, from bins that have it after the separator: those of
    `counted` among those of `of`. A name without any is left out."""
    rates = {
        name: Rate(
            bins.get(f"{counted}{SEPARATOR}{name}", 0),
            bins.get(f"{of}{SEPARATOR}{name}", 0),
        )
        for name in names
    }
    return {name: rate for name, rate in rates.items() if rate.total}


def split_bins(bins: Mapping[str, int]) -> dict[str, Bins]:
    """The bins under their first part, each by the rest of its name."""
    parts: dict[str, Bins] = defaultdict(dict)
    for name, count in bins.items():
        first, _, rest = name.partition(SEPARATOR)
        parts[first][rest] = count
    return parts


def sum_rates(rates: Iterable[Rate]) -> Rate:
    """The rate of all together, where no case is in two of them."""
    parts = list(rates)
    return Rate(sum(rate.count for rate in parts), sum(rate.total for rate in parts))


def build_rate_line(
    label: str, filters: MetricFilters, daily: Mapping[date, Bins], make_rate: MakeRate
) -> Line:
    """One rate a day."""
    rates = [make_rate(daily.get(day, {})) for day in filters.days]
    return Line(label, [Point(rate.share, rate.total) for rate in rates])


def build_percentile_lines(
    filters: MetricFilters, daily: Mapping[date, Bins]
) -> list[Line]:
    """The median and the p90 of each day."""
    times = [Times(daily.get(day, {})) for day in filters.days]
    return [
        Line("median", [Point(of_day.median, of_day.total) for of_day in times]),
        Line("p90", [Point(of_day.p90, of_day.total) for of_day in times]),
    ]


def build_time_panel(
    filters: MetricFilters,
    daily: Mapping[date, Bins],
    title: str = "",
    goal: float | None = None,
) -> LinePanel:
    """The median and the p90 of each day's times."""
    lines = build_percentile_lines(filters, daily)
    return LinePanel(list_places(filters), lines, Unit.SECONDS, title=title, goal=goal)


def build_count_panel(
    label: str, filters: MetricFilters, daily: Mapping[date, Bins], names: Iterable[str]
) -> LinePanel:
    """How many cases of some bins each day has."""
    bins = [daily.get(day, {}) for day in filters.days]
    counts = [sum(of_day.get(name, 0) for name in names) for of_day in bins]
    line = Line(label, [Point(count, count) for count in counts])
    places = list_places(filters)
    return LinePanel(places, [line], Unit.COUNT, title="Per day", steps=True)


@dataclass(frozen=True, slots=True)
class DailyRate:
    """A rate as a line over the days, and a table of it per tool and per day.

    `sentence` has the rate of the whole period in it; `nothing` is the one for a period
    without a case.
    """

    measure: Measure
    make_rate: MakeRate
    label: str
    sentence: str
    nothing: str
    goal: float | None = None

    def build_chart(self, readings: Readings) -> Chart:
        filters, daily = readings.filters, readings.daily(self.measure)
        whole = self.make_rate(readings.bins(self.measure))
        line = build_rate_line(self.label, filters, daily, self.make_rate)
        panel = LinePanel(list_places(filters), [line], Unit.SHARE, goal=self.goal)
        rows: list[Sequence[Cell]] = [
            ("Tool", tool, *list_rate_cells(self.make_rate(bins)))
            for tool, bins in readings.by_tool(self.measure).items()
        ]
        rows += [
            ("Day", f"{day:%Y-%m-%d}", *list_rate_cells(self.make_rate(daily[day])))
            for day in sorted(daily)
        ]
        return Chart(
            word_rate(whole, self.sentence, self.nothing),
            ("Per", "Value", "Rate", "Count", "Of"),
            rows,
            [panel] if whole.total else [],
        )


def build_dot_chart(
    sentence: str,
    columns: Sequence[str],
    rates: Mapping[str, Rate],
    goal: float | None = None,
) -> Chart:
    """A dot and a row for each label that has a rate."""
    known = {label: rate for label, rate in rates.items() if rate.total}
    dots = [Dot(label, rate) for label, rate in known.items()]
    rows = [(label, *list_rate_cells(rate)) for label, rate in known.items()]
    return Chart(sentence, columns, rows, [DotPanel(dots, goal=goal)] if dots else [])


def list_time_rows(
    readings: Readings, parts: Mapping[str, Measure]
) -> list[Sequence[Cell]]:
    """The rows of a table of some titled histograms, per tool."""
    return [
        (title, tool, *list_time_cells(Times(bins)))
        for title, measure in parts.items()
        for tool, bins in readings.by_tool(measure).items()
    ]


def list_rate_cells(rate: Rate) -> tuple[Cell, Cell, Cell]:
    """The cells of a rate: the share, the count and the total."""
    few = ", few" if rate.few and rate.total else ""
    share = "none" if rate.share is None else f"{rate.share * 100:.1f} %{few}"
    return share, rate.count, rate.total


def list_time_cells(times: Times) -> tuple[Cell, Cell, Cell]:
    """The cells of a histogram: its median, its p90 and its size."""
    return format_seconds(times.median), format_seconds(times.p90), times.total


def word_rate(rate: Rate, sentence: str, nothing: str) -> str:
    """The sentence with a rate in it, or the one for nothing to count."""
    return sentence.format(format_rate(rate)) if rate.total else nothing
