"""How many requests expire because nobody decided them."""

from __future__ import annotations

from ..charts import (
    Bar,
    BarPanel,
    Chart,
    Group,
    Line,
    LinePanel,
    Panel,
    Plot,
    Point,
    Unit,
    format_rate,
    list_places,
)
from ..readings import Readings
from ..series import build_rate_maker, list_rate_cells
from .outcome_mix import LABELS, OUTCOMES

GOAL = 0.01
make_rate = build_rate_maker(["expired"], LABELS)


def build_chart(readings: Readings) -> Chart:
    """Expired requests per day, and one bar a tool."""
    filters, daily = readings.filters, readings.daily(OUTCOMES)
    whole = make_rate(readings.bins(OUTCOMES))
    counts = [daily.get(day, {}).get("expired", 0) for day in filters.days]
    tools = {tool: make_rate(bins) for tool, bins in readings.by_tool(OUTCOMES).items()}
    bars = [Bar(tool, [rate.count]) for tool, rate in tools.items() if rate.count]
    if not whole.total:
        said = "No request was settled in this period."
    else:
        said = f"{format_rate(whole)} of the requests expired before a decision."
        said += " The goal is at most 1 %."
    panels: list[Panel] = [
        LinePanel(
            list_places(filters),
            [Line("expired", [Point(count, count) for count in counts])],
            Unit.COUNT,
            title="Per day",
            steps=True,
        ),
        BarPanel(["expired"], bars, title="Per tool"),
    ]
    rows = [(tool, *list_rate_cells(rate)) for tool, rate in tools.items()]
    columns = ("Tool", "Rate", "Expired", "Of")
    return Chart(said, columns, rows, panels if whole.count else [])


PLOT = Plot(
    slug="expired-requests",
    title="Expired requests",
    group=Group.TIMES,
    place=40,
    definition=(
        "Requests that expired because nobody decided them in time, per day and per "
        "tool, and their share of all requests that people decided or that expired. "
        "Nothing is executed for an expired request."
    ),
    measures=[OUTCOMES],
    build=build_chart,
    sliced=[OUTCOMES],
)
