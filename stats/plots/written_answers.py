"""What written answers cost: how long approvals with one take, and those without."""

from __future__ import annotations

from ..charts import Chart, Group, Plot, format_seconds
from ..measures import GIVEN, GIVEN_IN_DAY, NOT_UNDONE, Measure, build_seconds_sql
from ..readings import Readings, Times
from ..series import build_time_panels, list_time_rows


def _build_measure(name: str, condition: str) -> Measure:
    return Measure(
        name,
        f"""
        SELECT request.tool_name, request.risk,
               {build_seconds_sql("decision.took_ms * interval '1 millisecond'")}, 1
        FROM {GIVEN}
        WHERE {GIVEN_IN_DAY} AND decision.took_ms IS NOT NULL AND {NOT_UNDONE}
          AND decision.verdict IN ('approve', 'modify')
          AND request.risk IN ('high', 'critical') AND {condition}
        """,  # noqa: S608 constants
        crossed=False,
    )


WITH = _build_measure("time_with_answer", "decision.check_asked ? 'written'")
WITHOUT = _build_measure("time_without_answer", "NOT decision.check_asked ? 'written'")
PARTS = {"With a written answer": WITH, "Without a written answer": WITHOUT}


def build_chart(readings: Readings) -> Chart:
    """Both times per day, with their difference in the sentence."""
    answered, others = (Times(readings.bins(measure)) for measure in PARTS.values())
    panels = build_time_panels(readings, PARTS)
    rows = list_time_rows(readings, PARTS)
    if not answered.total:
        said = "No approval needed a written answer in this period."
    else:
        said = (
            f"Half of the {answered.total:,} approvals with a written answer took up to"
            f" {format_seconds(answered.median)}, and half of the {others.total:,}"
            " others at high and critical risk up to"
            f" {format_seconds(others.median)}."
        )
    columns = ("Approvals", "Tool", "Median", "p90", "Count")
    return Chart(said, columns, rows, panels if answered.total else [])


PLOT = Plot(
    slug="written-answers",
    title="Cost of written answers",
    group=Group.TIMES,
    place=25,
    definition=(
        "From when a person opened the page of a request at high or critical risk "
        "until they approved or changed it: with a written answer to a question about "
        "what Counterseal found (a risk indicator), and without one. Approvals that "
        "were undone are left out."
    ),
    measures=list(PARTS.values()),
    build=build_chart,
    sliced=list(PARTS.values()),
)
