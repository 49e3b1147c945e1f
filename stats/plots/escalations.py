"""How often people escalate, what becomes of it and how long it takes."""

from __future__ import annotations

from collections.abc import Sequence

from reviews.choices import ANSWERED, REQUEST_SPECS

from ..charts import (
    Bar,
    BarPanel,
    Cell,
    Chart,
    Group,
    Panel,
    Plot,
    format_rate,
    format_seconds,
)
from ..measures import ANSWERED_IN_DAY, Measure, build_seconds_sql
from ..readings import Rate, Readings, Times
from ..series import build_time_panel

_SETTLED = f"""
    FROM reviews_approvalrequest AS request
    LEFT JOIN LATERAL (
        SELECT min(vote.at) AS at FROM reviews_decision AS vote
        WHERE vote.request_id = request.id AND vote.verdict = 'escalate'
    ) AS escalated ON true
    WHERE {ANSWERED_IN_DAY}
"""  # noqa: S608 constants
ESCALATED = Measure(
    "escalated",
    f"""
    SELECT request.tool_name, request.risk,
           CASE WHEN escalated.at IS NULL THEN 'not escalated' ELSE request.status END,
           1
    {_SETTLED}
    """,
)
ANSWERS = Measure(
    "escalation_answers",
    f"""
    SELECT request.tool_name, request.risk,
           {build_seconds_sql("(request.settled_at - escalated.at)")}, 1
    {_SETTLED} AND request.status <> 'expired' AND escalated.at IS NOT NULL
    """,
)
LABELS = {status: REQUEST_SPECS[status].label.lower() for status in ANSWERED}


def build_chart(readings: Readings) -> Chart:
    """Bars of the outcomes per tool, and the time to the answer per day."""
    filters, bins = readings.filters, readings.bins(ESCALATED)
    count = sum(bins.get(name, 0) for name in LABELS)
    answers = Times(readings.bins(ANSWERS))
    bars = [
        Bar(tool, [outcomes.get(name, 0) for name in LABELS])
        for tool, outcomes in readings.by_tool(ESCALATED).items()
        if any(name in outcomes for name in LABELS)
    ]
    sentence = "People escalated none of the requests that were settled in this period."
    if count:
        rate = Rate(count, sum(bins.values()))
        sentence = f"People escalated {format_rate(rate)} of the settled requests."
        sentence += f" {bins.get('expired', 0):,} of these expired."
        if answers.total:
            sentence += (
                f" The median time to the answer was {format_seconds(answers.median)},"
            )
            sentence += f" and the p90 {format_seconds(answers.p90)}."
    panels: list[Panel] = [
        BarPanel(list(LABELS.values()), bars),
        build_time_panel(filters, readings.daily(ANSWERS), "Escalated to answered"),
    ]
    rows: list[Sequence[Cell]] = [
        (bar.label, *bar.parts, sum(bar.parts)) for bar in bars
    ]
    columns = ("Tool", *(label.capitalize() for label in LABELS.values()), "All")
    return Chart(sentence, columns, rows, panels if count else [])


PLOTS = [
    Plot(
        slug="escalations",
        title="Escalations",
        group=Group.TIMES,
        place=60,
        definition=(
            "Requests that a person escalated, divided by all requests that people "
            "decided or that expired, on the day on which they were settled; what "
            "became of them; and the time from the first escalation until they were "
            "approved or rejected. An escalation counts also when a supervisor "
            "returned it."
        ),
        measures=[ESCALATED, ANSWERS],
        build=build_chart,
        sliced=[ESCALATED],
    ),
]
