"""How many requests wait each hour, and the time that the nearest deadline leaves."""

from __future__ import annotations

from ..charts import (
    Chart,
    Group,
    Line,
    LinePanel,
    Plot,
    Point,
    Unit,
    format_day,
    format_seconds,
)
from ..measures import OPEN_IN_DAY, Combination, Measure
from ..readings import Bins, Readings

HOURS = [f"{hour:02}" for hour in range(24)]
_AT_HOURS = f"""
    FROM generate_series(%(start)s::timestamptz,
                         least(%(end)s::timestamptz - interval '1 hour', now()),
                         interval '1 hour') AS hour (at)
    JOIN {OPEN_IN_DAY} ON request.opened_at <= hour.at
        AND (request.settled_at > hour.at OR request.settled_at IS NULL)
"""
_HOUR = "to_char(hour.at AT TIME ZONE 'UTC', 'HH24')"
DEPTH = Measure(
    "queue_depth",
    f"SELECT request.tool_name, request.risk, {_HOUR}, 1 {_AT_HOURS}",
)
SLACK = Measure(
    "queue_slack",
    f"""
    SELECT request.tool_name, request.risk, {_HOUR},
           greatest(extract(epoch FROM request.expires_at - hour.at), 0)::bigint
    {_AT_HOURS}
    """,  # noqa: S608 constants
    Combination.LOWEST,
)


def build_chart(readings: Readings) -> Chart:
    """Per hour for a week, else the worst hour of each day."""
    filters = readings.filters
    depth, slack = readings.daily(DEPTH), readings.daily(SLACK)
    hourly = len(filters.days) <= 7
    places: list[str] = []
    depths: list[Point] = []
    slacks: list[Point] = []
    for day in filters.days:
        here, left = depth.get(day, {}), slack.get(day, {})
        for bins, rest in _split_day(here, left, hourly=hourly):
            places.append(format_day(day))
            most = max(bins.values(), default=0)
            depths.append(Point(most, most))
            slacks.append(Point(min(rest.values(), default=None), most))
    deepest = max((point.total for point in depths), default=0)
    every = "each hour" if hourly else "the worst hour of each day"
    sentence = "Nothing waited at any full hour of this period."
    if deepest:
        least = min(p.value for p in slacks if p.value is not None)
        sentence = (
            f"At the busiest full hour, {deepest:,} "
            f"{'request' if deepest == 1 else 'requests'} waited. The least time that "
            f"a waiting request had left was {format_seconds(least)}."
        )
    rows = [
        (f"{day:%Y-%m-%d}", f"{hour}:00", count, format_seconds(slack[day][hour]))
        for day in sorted(depth)
        for hour, count in sorted(depth[day].items())
    ]
    columns = ("Day", "Hour, UTC", "Waiting", "Least time left")
    panels = [
        LinePanel(
            places,
            [Line("waiting", depths)],
            Unit.COUNT,
            title=f"Waiting, {every}",
            steps=True,
        ),
        LinePanel(
            places,
            [Line("least time left", slacks)],
            Unit.SECONDS,
            title=f"Least time left, {every}",
            steps=True,
        ),
    ]
    return Chart(sentence, columns, rows, panels if deepest else [])


def _split_day(depth: Bins, slack: Bins, *, hourly: bool) -> list[tuple[Bins, Bins]]:
    """The figures of each hour, or of the day as one."""
    if not hourly:
        return [(depth, slack)]
    return [
        (
            {hour: depth[hour]} if hour in depth else {},
            {hour: slack[hour]} if hour in slack else {},
        )
        for hour in HOURS
    ]


PLOTS = [
    Plot(
        slug="queue-depth",
        title="Queue depth and least time left",
        group=Group.TIMES,
        place=30,
        definition=(
            "How many requests were open at each full hour (UTC), and how much time "
            "the nearest of their deadlines left; a deadline that was moved later "
            "counts as it stands now. Periods of more than a week show the worst hour "
            "of each day."
        ),
        measures=[DEPTH, SLACK],
        build=build_chart,
    ),
]
