"""How long it takes from a stop until nothing of it waits any more."""

from __future__ import annotations

from ..charts import Chart, Group, LinePanel, Plot, Unit, format_seconds, list_places
from ..measures import Measure, build_seconds_sql
from ..readings import Readings, Times
from ..series import build_time_lines, list_time_cells

# A stop that found nothing waiting halted nothing, and has no time.
HALTING = Measure(
    "halting_time",
    f"""
    SELECT NULL, NULL, {build_seconds_sql("(halted.at - stop.at)")}, 1
    FROM reviews_stop AS stop
    JOIN LATERAL (
        SELECT max(record.at) AS at FROM journal_logrecord AS record
        LEFT JOIN reviews_proposal AS proposal ON proposal.id = record.proposal
        WHERE record.kind IN ('request.withdrawn', 'execution.refused')
          AND convert_from(record.leaf, 'UTF8')::jsonb #>> '{{data,code}}' = 'stopped'
          AND record.at >= stop.at AND record.at < stop.at + interval '1 hour'
          AND (stop.lifted_at IS NULL OR record.at <= stop.lifted_at)
          AND CASE stop.scope
                  WHEN 'everything' THEN true
                  WHEN 'agent' THEN record.agent = stop.key
                  WHEN 'thread' THEN record.agent || '/' || record.thread = stop.key
                  WHEN 'tool' THEN proposal.tool_name = stop.key
                  ELSE false END
    ) AS halted ON halted.at IS NOT NULL
    WHERE stop.mode = 'stopped' AND stop.at >= %(start)s AND stop.at < %(end)s
    """,  # noqa: S608 constants
)


def build_chart(readings: Readings) -> Chart:
    """The median and the p90 per day."""
    filters, daily = readings.filters, readings.daily(HALTING)
    whole = Times(readings.bins(HALTING))
    said = "No stop withdrew anything in this period."
    if whole.total:
        many = "stop" if whole.total == 1 else "stops"
        said = f"{whole.total:,} {many} withdrew what waited: half within"
        said += f" {format_seconds(whole.median)}, nine of ten within"
        said += f" {format_seconds(whole.p90)}."
    panel = LinePanel(
        list_places(filters), build_time_lines(filters, daily), Unit.SECONDS
    )
    return Chart(
        said,
        ("Day", "Median", "p90", "Stops"),
        [
            (f"{day:%Y-%m-%d}", *list_time_cells(Times(daily[day])))
            for day in sorted(daily)
        ],
        [panel] if whole.total else [],
    )


PLOT = Plot(
    slug="halting-time",
    title="Time until a stop is complete",
    group=Group.EFFECTS,
    place=30,
    definition=(
        "From a stop of an agent, a run, a tool or everything until the last request "
        "or execution that it withdrew or refused within the hour. New effects are "
        "refused at once; this is the time until nothing that waited before is left."
    ),
    measures=[HALTING],
    build=build_chart,
    filtered=False,
)
