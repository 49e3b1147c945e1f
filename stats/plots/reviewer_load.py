"""How many requests a person decides in an hour, and how many of them are repeats."""

from __future__ import annotations

from ..charts import (
    Chart,
    Group,
    LinePanel,
    Plot,
    Unit,
    format_rate,
    list_places,
)
from ..measures import NOT_UNDONE, Measure
from ..people import DECIDERS
from ..readings import Readings, Times
from ..series import (
    build_percentile_lines,
    build_rate_line,
    build_rate_maker,
    list_rate_cells,
)

# An hour of a person is one hour whatever they decide in it, so it has no tool.
LOAD = Measure(
    "reviewer_load",
    """
    SELECT NULL, NULL, decided.n::text, 1
    FROM (SELECT count(DISTINCT decision.request_id) AS n
          FROM reviews_decision AS decision
          WHERE decision.at >= %(start)s AND decision.at < %(end)s
          GROUP BY decision.reviewer_id, date_trunc('hour', decision.at)) AS decided
    """,
)
REPEATS = Measure(
    "repeats",
    f"""
    SELECT NULL, NULL, kind.name, 1
    FROM (SELECT decision.at,
                 decision.at - lag(decision.at) OVER (
                     PARTITION BY decision.reviewer_id, request.repeat_key
                     ORDER BY decision.at, decision.id) <= interval '7 days' AS again
          FROM reviews_decision AS decision
          JOIN reviews_approvalrequest AS request ON request.id = decision.request_id
          WHERE decision.at >= %(start)s - interval '7 days'
            AND decision.at < %(end)s AND {NOT_UNDONE}) AS given
    CROSS JOIN LATERAL (VALUES
        ('decided'), (CASE WHEN given.again THEN 'repeated' END)
    ) AS kind (name)
    WHERE given.at >= %(start)s
    """,  # noqa: S608 constants
)
make_rate = build_rate_maker(["repeated"], ["decided"])


def build_chart(readings: Readings) -> Chart:
    """Requests an hour as median and p90, and the share of repeats."""
    filters, load = readings.filters, readings.daily(LOAD)
    repeats = readings.daily(REPEATS)
    whole, rate = Times(readings.bins(LOAD)), make_rate(readings.bins(REPEATS))
    if not whole.total:
        return Chart("Nobody decided a request in this period.", (), [])
    lines = build_percentile_lines(filters, load)
    places = list_places(filters)
    panels = [
        LinePanel(places, lines, Unit.COUNT, title="Requests per person and hour"),
        LinePanel(
            places,
            [build_rate_line("repeats", filters, repeats, make_rate)],
            Unit.SHARE,
            title="Decisions on a repeated action",
        ),
    ]
    sentence = (
        f"In half of the hours, a person decided at most {whole.median} "
        f"{'request' if whole.median == 1 else 'requests'}; in nine of ten, at most "
        f"{whole.p90}. Only hours in which that person decided count: "
        f"{whole.total:,}. {format_rate(rate)} of the decisions were on an action "
        "that the same person had decided within seven days."
    )
    rows = [
        (
            f"{day:%Y-%m-%d}",
            Times(load[day]).median or 0,
            Times(load[day]).p90 or 0,
            Times(load[day]).total,
            *list_rate_cells(make_rate(repeats.get(day, {}))),
        )
        for day in sorted(load)
    ]
    columns = ("Day", "Median", "p90", "Hours", "Repeats", "Count", "Decisions")
    return Chart(sentence, columns, rows, panels)


PLOTS = [
    Plot(
        slug="reviewer-load",
        title="Load and repeats",
        group=Group.ATTENTION,
        place=40,
        definition=(
            "How many requests one person decided in a clock hour in which they "
            "decided at least one, also one that was undone: the median and the p90 of "
            "all such hours. A repeat is a decision on the same agent, tool and "
            "arguments that the same person decided within the seven days before; for "
            "repeats, approvals that were undone are left out. Repeats tire people "
            "more than the number of requests."
        ),
        measures=[LOAD, REPEATS, DECIDERS],
        contributors=DECIDERS,
        build=build_chart,
        filtered=False,
    ),
]
