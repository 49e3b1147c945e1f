"""Series and tables that several plots share: rates and times per day and per tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def sum_rates(rates: Iterable[Rate]) -> Rate:
    """The rate of all together, where no case is in two of them."""
    parts = list(rates)
    return Rate(sum(one.count for one in parts), sum(one.total for one in parts))


def build_rate_line(
    label: str, filters: MetricFilters, daily: Mapping[date, Bins], rate: MakeRate
) -> Line:
    """One rate a day."""
    rates = [rate(daily.get(day, {})) for day in filters.days]
    return Line(label, [Point(one.share, one.total) for one in rates])


def add_bins(parts: Iterable[Mapping[str, int]]) -> Bins:
    """Bin by bin, the sum of several days."""
    found: Counter[str] = Counter()
    for part in parts:
        found.update(part)
    return dict(found)


def build_time_lines(filters: MetricFilters, daily: Mapping[date, Bins]) -> list[Line]:
    """The median and the p90 of each day."""
    found = [Times(daily.get(day, {})) for day in filters.days]
    return [
        Line("median", [Point(one.median, one.total) for one in found]),
        Line("p90", [Point(one.p90, one.total) for one in found]),
    ]


def build_daily_rate_chart(
    readings: Readings,
    measure: Measure,
    rate: MakeRate,
    say: Callable[[Rate], str],
    *,
    label: str,
    goal: float | None = None,
    goal_label: str = "",
    by_tool: bool = True,
) -> Chart:
    """A rate as a line over the days, and a table of it per tool and per day.

    `say` writes the sentence from the rate of the whole period.
    """
    filters, daily = readings.filters, readings.daily(measure)
    whole = rate(readings.bins(measure))
    line = build_rate_line(label, filters, daily, rate)
    panel = LinePanel(
        list_places(filters), [line], Unit.SHARE, goal=goal, goal_label=goal_label
    )
    tools = readings.by_tool(measure) if by_tool else {}
    rows: list[Sequence[Cell]] = [
        *(("Tool", tool, *list_rate_cells(rate(bins))) for tool, bins in tools.items()),
        *(
            ("Day", f"{day:%Y-%m-%d}", *list_rate_cells(rate(daily[day])))
            for day in sorted(daily)
        ),
    ]
    columns = ("Per", "Value", "Rate", "Count", "Of")
    return Chart(say(whole), columns, rows, [panel] if whole.total else [])


def build_time_panels(
    readings: Readings, parts: Mapping[str, Measure]
) -> list[LinePanel]:
    """The median and the p90 of each day, with a panel for each of some titled
    histograms."""
    filters = readings.filters
    return [
        LinePanel(
            list_places(filters),
            build_time_lines(filters, readings.daily(measure)),
            Unit.SECONDS,
            title=title,
        )
        for title, measure in parts.items()
    ]


def list_time_rows(
    readings: Readings, parts: Mapping[str, Measure]
) -> list[Sequence[Cell]]:
    """The rows of a table of the same, per tool."""
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


def build_tool_dots(tools: Mapping[str, Bins], rate: MakeRate) -> DotPanel:
    """The rate of each tool as a dot with its interval."""
    return DotPanel([Dot(tool, rate(bins)) for tool, bins in tools.items()])


def say_rate(rate: Rate, said: str, nothing: str) -> str:
    """A sentence with a rate in it, or the sentence for nothing to count."""
    return said.format(format_rate(rate)) if rate.total else nothing
