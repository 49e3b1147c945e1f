"""Rates that are one line over the days, with a table per tool and per day."""

from __future__ import annotations

from dataclasses import replace

from reviews.choices import DECIDED_SQL

from ..charts import Chart, Group, Plot
from ..measures import (
    ANSWERED_IN_DAY,
    DECIDED,
    GIVEN,
    GIVEN_IN_DAY,
    NOT_UNDONE,
    OPEN_IN_DAY,
    Combination,
    Measure,
)
from ..people import DECIDERS
from ..readings import Readings
from ..series import DailyRate, build_rate_maker
from . import outcomes

# The log says which runs finished; no package below `agents` knows its rows. A run that
# proposed nothing has no tool and counts only where all tools are meant.
RUNS = Measure(
    "finished_runs",
    """
    SELECT proposal.tool_name, revision.risk, kind.name, run.id
    FROM journal_logrecord AS run
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM reviews_proposal AS own
            JOIN reviews_approvalrequest AS request ON request.proposal_id = own.id
            WHERE own.agent = run.agent AND own.thread = run.thread
              AND NOT own.canary) AS waited
    ) AS found
    LEFT JOIN reviews_proposal AS proposal
        ON proposal.agent = run.agent AND proposal.thread = run.thread
        AND NOT proposal.canary
    LEFT JOIN reviews_revision AS revision
        ON revision.proposal_id = proposal.id AND revision.number = proposal.revision
    CROSS JOIN LATERAL (VALUES
        ('finished'), (CASE WHEN NOT found.waited THEN 'autonomous' END)
    ) AS kind (name)
    WHERE run.kind = 'thread.finished'
      AND run.at >= %(start)s AND run.at < %(end)s
    """,
    Combination.DISTINCT,
)
AUTONOMOUS = DailyRate(
    RUNS,
    build_rate_maker(["autonomous"], ["finished"]),
    "never waited for a person",
    "{} of the finished runs never waited for a person.",
    "No run finished in this period.",
)
CORRECTION = DailyRate(
    outcomes.OUTCOMES,
    build_rate_maker(outcomes.CORRECTED, outcomes.DECIDED),
    "rejected or changed",
    "People rejected or changed {} of the requests that they decided.",
    "People decided no request in this period.",
)
REJECTED = Measure(
    "rejected_runs",
    """
    SELECT request.tool_name, request.risk, kind.name, 1
    FROM reviews_approvalrequest AS request
    JOIN reviews_proposal AS proposal ON proposal.id = request.proposal_id
    LEFT JOIN LATERAL (
        SELECT convert_from(record.leaf, 'UTF8')::jsonb #>> '{data,result}' AS result
        FROM journal_logrecord AS record
        WHERE record.agent = proposal.agent AND record.thread = proposal.thread
          AND record.kind = 'thread.finished'
        ORDER BY record.id + 0 DESC LIMIT 1  -- as reviews/evidence/log_hashes.py
    ) AS run ON true
    CROSS JOIN LATERAL (VALUES
        ('rejected'),
        (CASE WHEN run.result = 'completed' THEN 'completed' END),
        (CASE WHEN run.result IS NULL THEN 'running' END)
    ) AS kind (name)
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
      AND request.status = 'rejected'
    """,
)
RECOVERY = DailyRate(
    REJECTED,
    build_rate_maker(["completed"], ["rejected"]),
    "run completed",
    "After {} of the rejections, the run still completed.",
    "No request was rejected in this period.",
)
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
FLOOD = DailyRate(
    MISSED,
    build_rate_maker(["missed"], ["settled"]),
    "missed",
    "{} of the settled requests expired unclaimed because too many waited. "
    "The goal is at most 1 %.",
    "No request was settled in this period.",
    goal=0.01,
)
TIMED = Measure(
    "fast_decisions",
    f"""
    SELECT request.tool_name, request.risk, kind.name, 1
    FROM {GIVEN}
    CROSS JOIN LATERAL (VALUES
        ('timed'), (CASE WHEN 'fast' = ANY (decision.flags) THEN 'fast' END)
    ) AS kind (name)
    WHERE {GIVEN_IN_DAY} AND decision.took_ms IS NOT NULL AND {NOT_UNDONE}
    """,  # noqa: S608 constants
)
FAST = DailyRate(
    TIMED,
    build_rate_maker(["fast"], ["timed"]),
    "fast",
    "{} of the decisions were confirmed before the minimum reading time. "
    "The goal is at most 3 %.",
    "Nobody decided a request on its page in this period.",
    goal=0.03,
)
FLAGGED = Measure(
    "flagged_approval",
    f"""
    SELECT request.tool_name, request.risk, kind.name, 1
    FROM {DECIDED}
    JOIN reviews_requestversion AS version ON version.request_id = request.id
        AND version.number = request.version
    JOIN reviews_revision AS revision ON revision.id = version.revision_id
    CROSS JOIN LATERAL (VALUES
        ('flagged'),
        (CASE WHEN request.status = 'authorized' AND NOT request.modified
              THEN 'unmodified' END)
    ) AS kind (name)
    WHERE jsonb_array_length(coalesce(revision.evaluation -> 'flags', '[]')) > 0
       OR revision.facts ? 'indicators'
    """,  # noqa: S608 constants
)
UNCHANGED = DailyRate(
    FLAGGED,
    build_rate_maker(["unmodified"], ["flagged"]),
    "approved unchanged",
    "People approved {} of the flagged requests without a change. "
    "The goal is at most 10 %.",
    "People decided no flagged request in this period.",
    goal=0.1,
)


def _build_recovery_chart(readings: Readings) -> Chart:
    """The rate, and how many of the runs may still complete."""
    chart = RECOVERY.build_chart(readings)
    running = readings.bins(REJECTED).get("running", 0)
    if not running:
        return chart
    rest = f" For {running:,} of the rejections, the run is not finished."
    return replace(chart, sentence=chart.sentence + rest)


PLOTS = [
    Plot(
        slug="autonomous-completion",
        title="Autonomous completion rate",
        group=Group.OUTCOMES,
        place=10,
        definition=(
            "Finished runs that never waited for a person, divided by all finished "
            "runs. A run counts on the day on which it finished, and for each tool and "
            "risk level that it proposed. A run that had an approval request waited, "
            "however short."
        ),
        measures=[RUNS],
        build=AUTONOMOUS.build_chart,
        sliced=[RUNS],
    ),
    Plot(
        slug="correction-rate",
        title="Correction rate",
        group=Group.OUTCOMES,
        place=20,
        definition=(
            "Rejected requests and requests that a person changed, divided by all "
            "requests that people decided; an approval that was undone decides "
            "nothing. A rise can mean weak proposals, a tool that is too broad, or a "
            "risk level that does not fit."
        ),
        measures=[outcomes.OUTCOMES],
        build=CORRECTION.build_chart,
        sliced=[outcomes.OUTCOMES],
    ),
    Plot(
        slug="rejection-recovery",
        title="Recovery after a rejection",
        group=Group.OUTCOMES,
        place=60,
        definition=(
            "Rejected requests whose run later completed, divided by all rejected "
            "requests, on the day of the rejection. A run completed when its agent "
            "reports so. Runs that are not finished count as not completed until they "
            "are."
        ),
        measures=[REJECTED],
        build=_build_recovery_chart,
        sliced=[REJECTED],
    ),
    Plot(
        slug="missed-in-flood",
        title="Missed because too many waited",
        group=Group.TIMES,
        place=50,
        definition=(
            "Requests that expired and that nobody ever claimed, while more requests "
            "waited in their queue than its people had settled in an hour over the "
            "seven days before, divided by all requests that people decided or that "
            "expired. The pace is the number of requests that people settled in those "
            "days, divided by the hours in which at least one person decided."
        ),
        measures=[MISSED],
        build=FLOOD.build_chart,
        sliced=[MISSED],
    ),
    Plot(
        slug="fast-decisions",
        title="Fast decisions",
        group=Group.ATTENTION,
        place=10,
        definition=(
            "Decisions that a person confirmed before the minimum reading time of the "
            "risk level, although the page asked to wait, divided by all decisions on "
            "a page. Approvals that were undone are left out. A rising share is a sign "
            "of fatigue."
        ),
        measures=[TIMED, DECIDERS],
        build=FAST.build_chart,
        sliced=[TIMED],
        contributors=DECIDERS,
    ),
    Plot(
        slug="flagged-approval",
        title="Flagged, but approved without a change",
        group=Group.EFFECTS,
        place=10,
        definition=(
            "Requests with at least one flag that people approved without changing an "
            "argument, divided by all flagged requests that they decided; an approval "
            "that was undone decides nothing. A rule of the policy sets a flag; "
            "Counterseal does when the agent itself is uncertain, and for a risk "
            "indicator: a contradiction, an imitated domain, a first payment or an "
            "unusual amount."
        ),
        measures=[FLAGGED],
        build=UNCHANGED.build_chart,
        sliced=[FLAGGED],
    ),
]
