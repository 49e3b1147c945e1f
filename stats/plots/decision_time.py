"""How long people read before they decide, per risk level."""

from __future__ import annotations

from policies.choices import Risk

from ..charts import Chart, Group, LinePanel, Plot, Unit, format_seconds, list_places
from ..measures import GIVEN, GIVEN_IN_DAY, NOT_UNDONE, Measure, build_seconds_sql
from ..readings import Readings, Times
from ..series import add_bins, build_time_lines, list_time_cells

GOALS = {Risk.LOW: 15, Risk.MEDIUM: 30, Risk.HIGH: 60, Risk.CRITICAL: 120}
DECISION_TIMES = Measure(
    "decision_times",
    f"""
    SELECT request.tool_name, request.risk,
           {build_seconds_sql("decision.took_ms * interval '1 millisecond'")}, 1
    FROM {GIVEN}
    WHERE {GIVEN_IN_DAY} AND decision.took_ms IS NOT NULL AND {NOT_UNDONE}
    """,  # noqa: S608 constants
)


def build_chart(readings: Readings) -> Chart:
    """One panel a risk level that has decisions, with its goal."""
    filters = readings.filters
    chosen = [risk for risk in Risk if filters.risk in {"", risk}]
    panels, rows, said = [], [], []
    for risk in chosen:
        daily = readings.daily_of_risk(DECISION_TIMES, risk)
        whole = Times(add_bins(daily.values()))
        if not whole.total:
            continue
        panels.append(
            LinePanel(
                list_places(filters),
                build_time_lines(filters, daily),
                Unit.SECONDS,
                title=f"Risk level {risk}",
                goal=GOALS[risk],
                goal_label=f"goal {GOALS[risk]} s",
            )
        )
        said.append(f"{format_seconds(whole.median)} at risk level {risk}")
        rows += [
            (str(risk), f"{day:%Y-%m-%d}", *list_time_cells(Times(daily[day])))
            for day in sorted(daily)
        ]
    sentence = (
        f"Half of the decisions were made within {', '.join(said)}, counted from when "
        "the person opened the page."
        if said
        else "Nobody decided a request on its page in this period."
    )
    columns = ("Risk level", "Day", "Median", "p90", "Decisions")
    return Chart(sentence, columns, rows, panels)


PLOT = Plot(
    slug="decision-time",
    title="Time to decision",
    group=Group.TIMES,
    place=10,
    definition=(
        "From when a person opened the page of a request until their decision: the "
        "median and the p90 of each day, per risk level. The goals for the median are "
        "15 seconds for low, 30 for medium, 60 for high and 120 for critical. "
        "Decisions that did not come from a page have no such time, and approvals that "
        "were undone are left out."
    ),
    measures=[DECISION_TIMES],
    build=build_chart,
    by_risk=[DECISION_TIMES],
)
