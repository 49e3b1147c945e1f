"""Requests that expired unclaimed while more waited than people could decide."""

from __future__ import annotations

from reviews.choices import DECIDED_SQL

from ..charts import Chart, Group, Plot
from ..measures import ANSWERED_IN_DAY, OPEN_IN_DAY, Measure
from ..readings import Readings
from ..series import build_daily_rate_chart, build_rate_maker, say_rate

GOAL = 0.01
# `level` counts what was open in the queue after each change; with the requests that
# left at the same moment, it is what waited at that moment.
MISSED = Measure(
    "missed_in_flood",
    f"""
    WITH change AS (
        SELECT request.queue_id, request.opened_at AS at, 1 AS step, NULL AS id
        FROM {OPEN_IN_DAY}
        UNION ALL
        SELECT request.queue_id, request.settled_at, -1, request.id
        FROM {OPEN_IN_DAY} WHERE request.settled_at IS NOT NULL
    ), level AS (
        SELECT id, sum(step) OVER (PARTITION BY queue_id ORDER BY at)
                   + count(id) OVER (PARTITION BY queue_id, at) AS waiting
        FROM change
    ), pace AS (
        SELECT request.queue_id,
               count(DISTINCT request.id)::numeric
                   / count(DISTINCT date_trunc('hour', decision.at)) AS hourly
        FROM reviews_decision AS decision
        JOIN reviews_approvalrequest AS request ON request.id = decision.request_id
        WHERE decision.at >= %(start)s - interval '7 days' AND decision.at < %(start)s
          AND request.status IN ({DECIDED_SQL})
        GROUP BY request.queue_id
    )
    SELECT request.tool_name, request.risk, kind.name, 1
    FROM reviews_approvalrequest AS request
    LEFT JOIN level ON level.id = request.id
    LEFT JOIN pace ON pace.queue_id = request.queue_id
    CROSS JOIN LATERAL (VALUES
        ('settled'),
        (CASE WHEN request.status = 'expired'
                   AND level.waiting > coalesce(pace.hourly, 0)
                   AND NOT EXISTS (SELECT FROM reviews_decision AS vote
                                   WHERE vote.request_id = request.id)
                   AND NOT EXISTS (SELECT FROM journal_logrecord AS record
                                   WHERE record.proposal = request.proposal_id
                                     AND record.kind = 'hold.taken')
                   AND NOT EXISTS (
                       SELECT FROM reviews_statereading AS reading
                       JOIN reviews_revision AS revision
                           ON revision.id = reading.revision_id
                       WHERE revision.proposal_id = request.proposal_id
                         AND reading.cause = 'opened')
              THEN 'missed' END)
    ) AS kind (name)
    WHERE {ANSWERED_IN_DAY}
    """,  # noqa: S608 constants
)
make_rate = build_rate_maker(["missed"], ["settled"])


def build_chart(readings: Readings) -> Chart:
    """The share per day and per tool."""
    return build_daily_rate_chart(
        readings,
        MISSED,
        make_rate,
        lambda rate: say_rate(
            rate,
            "{} of the settled requests expired unclaimed because too many waited. "
            "The goal is at most 1 %.",
            "No request was settled in this period.",
        ),
        label="missed",
        goal=GOAL,
        goal_label="goal 1 %",
    )


PLOT = Plot(
    slug="missed-in-flood",
    title="Missed because too many waited",
    group=Group.TIMES,
    place=50,
    definition=(
        "Requests that expired and that nobody ever claimed, while more requests "
        "waited in their queue than its people had settled in an hour over the seven "
        "days before, divided by all requests that people decided or that expired. "
        "The pace is the number of requests that people settled in those days, "
        "divided by the hours in which at least one person decided."
    ),
    measures=[MISSED],
    build=build_chart,
    sliced=[MISSED],
)
