"""What the statistics page shows: filters, and the plots of one group."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.safestring import SafeString

from journal.errors import NotFound
from policies.choices import Risk, Role
from policies.models import Person, Tool
from policies.people import is_administrator
from reviews import permissions
from reviews.models import MetricDay
from reviews.roles import Permission
from stats import people
from stats.charts import (
    POLICY_LINK,
    Cell,
    Chart,
    Group,
    LinePanel,
    Panel,
    Plot,
    format_period,
)
from stats.plots import find_plot, list_plots
from stats.readings import MetricFilters, Readings, load_readings

from ..components import svg
from ..components.formatting import FilterSelect, build_filter_select
from .summary import SummaryNumber, list_summary_numbers

GROUP_LABELS = {
    Group.OUTCOMES: "Outcomes",
    Group.TIMES: "Times",
    Group.ATTENTION: "Attention",
    Group.EFFECTS: "Effects",
}
PERIODS = {"7": "7 days", "30": "30 days", "90": "90 days"}
DEFAULT_PERIOD = "30"
_UNIT = re.compile(r"(?<=\d) (?=(?:%|(?:s|min|h|d)\b))")
FEWEST_POINTS = 2  # of a line that is drawn: one dot says less than its sentence
MOST_ROWS = 200  # of one table on the page; the CSV has all


@dataclass(frozen=True, slots=True)
class StatisticsFilters:
    """The filters in the URL. An invalid value is ignored."""

    tool: str = ""
    risk: str = ""
    days: str = DEFAULT_PERIOD

    @classmethod
    def read(cls, query: Mapping[str, str]) -> StatisticsFilters:
        risk, days = query.get("risk", ""), query.get("days", "")
        return cls(
            tool=query.get("tool", "")[:64].replace("\0", ""),
            risk=risk if risk in set(Risk) else "",
            days=days if days in PERIODS else DEFAULT_PERIOD,
        )

    @property
    def query(self) -> str:
        """The query string of these filters; empty for the defaults."""
        values = {"tool": self.tool, "risk": self.risk, "days": self.days}
        usual = {"tool": "", "risk": "", "days": DEFAULT_PERIOD}
        text = urlencode({k: v for k, v in values.items() if v != usual[k]})
        return f"?{text}" if text else ""

    def build_period(self, now: datetime) -> MetricFilters:
        """The days up to today, in UTC."""
        last = now.astimezone(UTC).date()
        first = last - timedelta(days=int(self.days) - 1)
        return MetricFilters(self.tool, self.risk, first, last)

    def list_selects(self) -> list[FilterSelect]:
        """The selects above the plots."""
        names = Tool.objects.order_by("name").values_list("name", flat=True).distinct()
        tools = {"": "All", **{name: name for name in names}}
        if self.tool and self.tool not in tools:
            tools[self.tool] = self.tool
        risks = {"": "All", **{risk.value: risk.value.capitalize() for risk in Risk}}
        return [
            build_filter_select("tool", "Tool", tools, self.tool),
            build_filter_select("risk", "Risk level", risks, self.risk),
            build_filter_select("days", "Period", PERIODS, self.days),
        ]


@dataclass(frozen=True, slots=True)
class GroupTab:
    """One tab of the page."""

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class PlotView:
    """One plot as the page shows it. `rows` are the first of the chart's."""

    plot: Plot
    chart: Chart
    sentence: str
    unfiltered: bool
    drawings: Sequence[tuple[str, SafeString]]
    rows: Sequence[Sequence[Cell]]
    csv_url: str
    link_label: str
    link_url: str


@dataclass(frozen=True, slots=True)
class StatisticsPage:
    """The whole page. `computed_at` is when today's figures were computed; `numbers`
    lead it while there is too little for curves."""

    title: str
    tabs: list[GroupTab]
    selects: list[FilterSelect]
    period: str
    computed_at: datetime | None
    numbers: list[SummaryNumber]
    plots: list[PlotView]


def build_statistics_page(
    person: Person, group: str, filters: StatisticsFilters, now: datetime
) -> StatisticsPage:
    """Build the page of one group, in a fixed number of queries. Raises NotPermitted
    for people who may not see statistics, NotFound for a group that does not exist."""
    permissions.check_permission(person, Permission.SEE_STATISTICS)
    alone = permissions.find_deciding_role(person) is Role.SUPERVISOR
    if group not in set(Group):
        raise NotFound
    plots = [plot for plot in list_plots() if plot.group == group]
    period, writes = filters.build_period(now), is_administrator(person)
    return StatisticsPage(
        title=GROUP_LABELS[Group(group)],
        tabs=[
            GroupTab(label, _build_group_url(name, filters), name == group)
            for name, label in GROUP_LABELS.items()
            if any(plot.group == name for plot in list_plots())
        ],
        selects=filters.list_selects(),
        period=format_period(period),
        computed_at=_find_computation_time(period.last),
        numbers=list_summary_numbers(period) if group == Group.OUTCOMES else [],
        plots=[
            _build_plot_view(plot, chart, filters, writes=writes)
            for plot, chart in build_charts(plots, period, alone=alone)
        ],
    )


def load_plot_table(
    person: Person, slug: str, filters: StatisticsFilters, now: datetime
) -> Chart:
    """Build one plot for its CSV file. Raises NotPermitted, NotFound."""
    permissions.check_permission(person, Permission.SEE_STATISTICS)
    alone = permissions.find_deciding_role(person) is Role.SUPERVISOR
    plot = find_plot(slug)
    if plot is None:
        raise NotFound
    ((_, chart),) = build_charts([plot], filters.build_period(now), alone=alone)
    return chart


def build_charts(
    plots: Sequence[Plot], period: MetricFilters, *, alone: bool
) -> list[tuple[Plot, Chart]]:
    """Build the plots of one filter and period; one that no tool or risk level applies
    to is built for all of them. `alone`: the reader may see how one person works."""
    whole = MetricFilters("", "", period.first, period.last)
    readings = {
        filtered: _load_plot_readings(
            [plot for plot in plots if plot.filtered == filtered],
            period if filtered else whole,
        )
        for filtered in (True, False)
    }
    return [
        (plot, _build_chart(plot, readings[plot.filtered], alone=alone))
        for plot in plots
    ]


def _build_chart(plot: Plot, readings: Readings, *, alone: bool) -> Chart:
    counted = plot.contributors
    if counted and not (alone or people.has_enough_people(readings, counted)):
        return people.build_withheld_chart(plot.contribution)
    return plot.build(readings)


def _load_plot_readings(plots: Sequence[Plot], period: MetricFilters) -> Readings:
    return load_readings(
        period,
        [measure for plot in plots for measure in plot.measures],
        [measure for plot in plots for measure in plot.sliced],
        [measure for plot in plots for measure in plot.by_risk],
    )


def _build_group_url(group: Group, filters: StatisticsFilters) -> str:
    return reverse("reviews:statistics_group", args=[group]) + filters.query


def _keep_units(sentence: str) -> str:
    """The sentence with every number on one line with its unit."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", sentence)


def _find_computation_time(day: date) -> datetime | None:
    moments = MetricDay.objects.filter(day=day).values_list("computed_at", flat=True)
    return moments.first()


def _says_more_than_a_sentence(panel: Panel) -> bool:
    """Whether a drawing is more than one dot of a line."""
    if not isinstance(panel, LinePanel):
        return True
    counts = (sum(p.value is not None for p in line.points) for line in panel.lines)
    return max(counts, default=0) >= FEWEST_POINTS


def _build_plot_view(
    plot: Plot, chart: Chart, filters: StatisticsFilters, *, writes: bool
) -> PlotView:
    link_label, link = chart.link_label, chart.link
    if writes and link == POLICY_LINK:
        link_label, link = "New policy version", "policies:new_policy"
    return PlotView(
        plot=plot,
        chart=chart,
        sentence=_keep_units(chart.sentence),
        unfiltered=bool(not plot.filtered and (filters.tool or filters.risk)),
        drawings=[
            (
                panel.title,
                svg.draw_panel(
                    panel, f"{plot.slug}-{number}", plot.title, chart.sentence
                ),
            )
            for number, panel in enumerate(chart.panels)
            if _says_more_than_a_sentence(panel)
        ],
        rows=chart.rows[:MOST_ROWS],
        csv_url=reverse("reviews:statistics_csv", args=[plot.slug]) + filters.query,
        link_label=link_label,
        link_url=reverse(link) if link else "",
    )
