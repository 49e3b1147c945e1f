"""Each figure of the statistics equals a recount by one plain query over the gate's
rows, which shares nothing with the measure: neither its SQL nor its days."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import pytest
from django.db import connection

from policies.choices import Risk
from reviews.models import MetricDay, MetricRollup
from stats import rollups
from stats.measures import Measure
from stats.plots import list_measures, list_plots
from stats.readings import MetricFilters, Times, load_readings
from tests.conftest import Gate
from tests.reviews import states
from tests.stats.generating import generate_past
from tests.stats.recounting import NOTICE, NOTICES, OTHER_CHANNELS, Period
from tests.stats.tables import recount_tables

DAYS = 10
LAST = date(2026, 3, 31)
# A tool and a risk level (empty: all), and the first and last of the generated days.
FILTERS = [
    ("", "", 0, DAYS - 1),
    ("pay", "", 0, DAYS - 1),
    ("", "high", 0, DAYS - 1),
    ("tag", "critical", 0, DAYS - 1),
    ("", "", 4, 4),
]

# Each recount gives (bin, value) of the whole period.
COUNTS = {
    "outcomes": """
        SELECT CASE WHEN r.status <> 'authorized' THEN r.status
                    WHEN bool_or(d.verdict = 'modify') THEN 'modified'
                    WHEN bool_or(d.verdict = 'escalate') THEN 'escalated'
                    ELSE 'approved' END AS bin
        FROM reviews_approvalrequest r
        LEFT JOIN reviews_decision d ON d.request_id = r.id
        WHERE r.status IN ('authorized', 'rejected', 'expired')
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r)
        GROUP BY r.id
    """,
    "rejected_runs": """
        SELECT unnest(ARRAY['rejected',
            CASE WHEN bool_or(l.leaf::text IS NOT NULL
                 AND position('completed' IN convert_from(l.leaf, 'UTF8')) > 0)
                 THEN 'completed' END,
            CASE WHEN count(l.id) = 0 THEN 'running' END]) AS bin
        FROM reviews_approvalrequest r JOIN reviews_proposal p ON p.id = r.proposal_id
        LEFT JOIN journal_logrecord l ON l.kind = 'thread.finished'
            AND (l.agent, l.thread) = (p.agent, p.thread)
        WHERE r.status = 'rejected' AND r.settled_at >= :start AND r.settled_at < :end
          AND :of(r)
        GROUP BY r.id
    """,
    "proposed": """
        SELECT unnest(ARRAY['proposed', CASE WHEN p.id IN (
                   SELECT proposal_id FROM reviews_approvalrequest) THEN 'asked' END])
               || :sep || (v.evaluation ->> 'effect_class') AS bin
        FROM reviews_proposal p JOIN reviews_revision v
            ON (v.proposal_id, v.number) = (p.id, p.revision)
        WHERE p.created_at >= :start AND p.created_at < :end
          AND p.blocked_by = '' AND :of(p, v)
    """,
    "caught": """
        SELECT unnest(ARRAY['decided', CASE WHEN r.status = 'rejected' OR r.id IN (
                   SELECT request_id FROM reviews_decision WHERE verdict = 'modify')
                   THEN 'caught' END])
               || :sep || (v.evaluation ->> 'effect_class') AS bin
        FROM reviews_approvalrequest r JOIN reviews_proposal p ON p.id = r.proposal_id
        JOIN reviews_revision v ON (v.proposal_id, v.number) = (p.id, p.revision)
        WHERE r.status IN ('authorized', 'rejected')
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r)
    """,
    "canaries": """
        SELECT unnest(ARRAY['decided', CASE WHEN r.caught THEN 'caught' END])
               || :sep || r.defect AS bin
        FROM canary_apart r
        WHERE r.ending = 'decided' AND r.ended_at >= :start AND r.ended_at < :end
          AND :of(r)
    """,
    "second_reviews": """
        SELECT concat_ws(:sep, d.verdict, s.verdict) AS bin
        FROM reviews_approvalrequest r JOIN reviews_decision d ON d.request_id = r.id
        JOIN reviews_secondreview s ON s.decision_id = d.id
        WHERE s.agrees IS NOT NULL AND r.settled_at >= :start AND r.settled_at < :end
          AND :of(r)
    """,
    "audit_yield": """
        SELECT unnest(ARRAY['reviewed', CASE WHEN s.verdict <> d.verdict THEN 'split'
               END, CASE WHEN s.upheld = 'second' THEN 'found' END])
               || :sep || s.cause AS bin
        FROM reviews_approvalrequest r JOIN reviews_decision d ON d.request_id = r.id
        JOIN reviews_secondreview s ON s.decision_id = d.id
        WHERE s.verdict <> '' AND r.settled_at >= :start AND r.settled_at < :end
          AND :of(r)
    """,
    "canary_speeds": """
        SELECT unnest(ARRAY['decided', CASE WHEN r.caught THEN 'caught' END])
               || :sep || (ARRAY['under 5 s', '5 to 10 s', '10 to 30 s', '30 to 60 s',
                   '1 to 2 min', '2 min and longer'])[1 + width_bucket(r.took_ms,
                   ARRAY[5000, 10000, 30000, 60000, 120000])] AS bin
        FROM canary_apart r
        WHERE r.ending = 'decided' AND r.ended_at >= :start AND r.ended_at < :end
          AND :of(r)
    """,
    "rejection_reasons": """
        SELECT 'all' || :sep || d.reason_code AS bin
        FROM reviews_decision d JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.verdict = 'reject' AND d.at >= :start AND d.at < :end AND :of(r)
        UNION ALL
        SELECT concat('rule', :sep, d.reason_code, :sep, rule ->> 'id', :sep,
                      o.agent_version)
        FROM reviews_decision d JOIN reviews_approvalrequest r ON r.id = d.request_id
        JOIN reviews_requestversion n
            ON (n.request_id, n.number) = (d.request_id, d.version)
        JOIN reviews_revision o ON o.id = n.revision_id
        CROSS JOIN jsonb_array_elements(
            CASE WHEN n.rules = '[]' THEN '[{}]' ELSE n.rules END) rule
        WHERE d.verdict = 'reject' AND d.at >= :start AND d.at < :end AND :of(r)
    """,
    "modified_fields": """
        SELECT new.key AS bin
        FROM reviews_approvalrequest r
        JOIN reviews_revision a ON (a.proposal_id, a.number) = (r.proposal_id, 1)
        JOIN reviews_revision b ON (b.proposal_id, b.number) = (r.proposal_id, 2)
        CROSS JOIN jsonb_each_text(
            convert_from(b.canonical, 'UTF8')::jsonb -> 'args') new
        JOIN jsonb_each_text(convert_from(a.canonical, 'UTF8')::jsonb -> 'args') old
            ON old.key = new.key AND old.value <> new.value
        WHERE r.settled_at >= :start AND r.settled_at < :end AND :of(r)
    """,
    "missed_in_flood": """
        WITH pace AS (
            SELECT day, o.queue_id, count(DISTINCT d.request_id)::float
                   / count(DISTINCT floor(extract(epoch FROM d.at) / 3600)) AS hourly
            FROM generate_series(:start, :end, interval '1 day') day
            JOIN reviews_decision d
                ON d.at >= day - interval '7 days' AND d.at < day
            JOIN reviews_approvalrequest o
                ON o.id = d.request_id AND o.status IN ('authorized', 'rejected')
            GROUP BY 1, 2
        ), unopened AS MATERIALIZED (  -- none waits longer than five hours
            SELECT r.* FROM reviews_approvalrequest r WHERE r.status = 'expired'
              AND r.id NOT IN (SELECT request_id FROM reviews_decision)
              AND r.id NOT IN (SELECT request FROM journal_logrecord
                               WHERE kind = 'hold.taken') AND :of(r)
        )
        SELECT unnest(ARRAY['settled', CASE WHEN r.id IN (
            SELECT u.id FROM unopened u JOIN reviews_approvalrequest w
                ON w.queue_id = u.queue_id AND w.opened_at <= u.settled_at
                AND w.opened_at >= u.settled_at - interval '5 hours'
                AND (w.settled_at IS NULL OR w.settled_at >= u.settled_at)
            LEFT JOIN pace ON pace.queue_id = u.queue_id
                AND u.settled_at - pace.day BETWEEN '0' AND interval '86399.999999 s'
            GROUP BY u.id HAVING count(*) > coalesce(min(hourly), 0))
            THEN 'missed' END]) AS bin
        FROM reviews_approvalrequest r
        WHERE r.status IN ('authorized', 'rejected', 'expired')
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r)
    """,
    "escalated": """
        SELECT CASE WHEN r.id IN (SELECT request_id FROM reviews_decision
                                  WHERE verdict = 'escalate')
                    THEN r.status ELSE 'not escalated' END AS bin
        FROM reviews_approvalrequest r
        WHERE r.status IN ('authorized', 'rejected', 'expired')
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r)
    """,
    "fast_decisions": """
        SELECT unnest(ARRAY['timed',
                            CASE WHEN d.flags && '{fast}' THEN 'fast' END]) AS bin
        FROM kept_decision d JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.took_ms >= 0 AND d.at >= :start AND d.at < :end AND :of(r)
    """,
    "attention_checks": """
        SELECT unnest(ARRAY['asked', CASE WHEN (d.check_asked -> 'answers' ->> 0)::int
                   = (d.check_asked ->> 'right')::int THEN 'right' END]) AS kind,
               substring(d.check_asked ->> 'question' FROM '^[a-z]+') AS name
        FROM reviews_decision d JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.check_asked ->> 'right' IS NOT NULL
          AND d.at >= :start AND d.at < :end AND :of(r)
    """,
    "conflicts": """
        SELECT convert_from(l.leaf, 'UTF8')::json -> 'data' ->> 'code' AS bin
        FROM journal_logrecord l JOIN reviews_approvalrequest r ON r.id = l.request
        WHERE l.kind = 'decision.refused' AND l.at >= :start AND l.at < :end AND :of(r)
    """,
    "flagged_approval": """
        SELECT unnest(ARRAY['flagged', CASE WHEN r.status = 'authorized'
                   AND v.number = 1 THEN 'unmodified' END]) AS bin
        FROM reviews_approvalrequest r JOIN reviews_proposal p ON p.id = r.proposal_id
        JOIN reviews_revision v ON (v.proposal_id, v.number) = (p.id, p.revision)
        WHERE r.status IN ('authorized', 'rejected')
          AND (v.evaluation ->> 'flags' <> '[]'
               OR v.facts -> 'indicators' IS NOT NULL)
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r)
    """,
    "regret": """
        SELECT unnest(ARRAY['executed', CASE WHEN x.id IN (
                   SELECT u.execution_id FROM reviews_reversal u
                   WHERE u.at - x.finished_at <= interval '7 days')
                   THEN 'regret' END]) AS kind,
               CASE WHEN r.id IS NULL THEN 'unasked'
                    WHEN p.revision = 2 THEN 'modified' ELSE 'approved' END AS name
        FROM reviews_execution x JOIN reviews_proposal p ON p.id = x.proposal_id
        JOIN reviews_revision v ON (v.proposal_id, v.number) = (p.id, p.revision)
        LEFT JOIN reviews_approvalrequest r ON r.proposal_id = p.id
        WHERE x.status = 'succeeded' AND :of(p, v)
          AND coalesce(r.settled_at, p.created_at) >= :start
          AND coalesce(r.settled_at, p.created_at) < :end
    """,
    "repeats": """
        WITH asked AS (
            SELECT d.id, d.at, d.reviewer_id, r.repeat_key FROM kept_decision d
            JOIN reviews_approvalrequest r ON r.id = d.request_id
        )
        SELECT unnest(ARRAY['decided', CASE WHEN d.id IN (
            SELECT late.id FROM asked late
            JOIN asked early USING (reviewer_id, repeat_key)
            WHERE (early.at, early.id) < (late.at, late.id)
              AND late.at - early.at <= interval '7 days')
            THEN 'repeated' END]) AS bin
        FROM kept_decision d WHERE d.at >= :start AND d.at < :end
    """,
    "reviewer_load": """
        SELECT count(DISTINCT request_id)::text AS bin FROM reviews_decision
        WHERE at >= :start AND at < :end GROUP BY reviewer_id, floor(
            extract(epoch FROM at) / 3600)
    """,
    "deciders": """
        SELECT DISTINCT d.reviewer_id::text AS bin FROM reviews_decision d
        JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.at >= :start AND d.at < :end AND :of(r)
    """,
    "canary_deciders": """
        SELECT DISTINCT r.reviewer_id::text AS bin FROM canary_apart r
        WHERE r.ending = 'decided' AND r.ended_at >= :start AND r.ended_at < :end
          AND :of(r)
    """,
    "finished_runs": """
        SELECT unnest(ARRAY['finished', CASE WHEN bool_and(NOT EXISTS (
            SELECT FROM reviews_proposal q JOIN reviews_approvalrequest w
                ON w.proposal_id = q.id
            WHERE (q.agent, q.thread) = (l.agent, l.thread)))
            THEN 'autonomous' END]) AS bin
        FROM journal_logrecord l JOIN reviews_proposal p ON p.thread = l.thread
        JOIN reviews_revision v ON (v.proposal_id, v.number) = (p.id, p.revision)
        WHERE l.kind = 'thread.finished' AND l.at >= :start AND l.at < :end
          AND :of(p, v)
        GROUP BY l.id
    """,
}
# These give (seconds) of each case; the percentiles are PostgreSQL's own.
SECONDS = {
    "decision_times": """
        SELECT d.took_ms / 1000.0 AS s FROM kept_decision d
        JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.took_ms IS NOT NULL AND d.at >= :start AND d.at < :end AND :of(r)
    """,
    "time_with_answer": """
        SELECT d.took_ms / 1000.0 AS s FROM kept_decision d
        JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.took_ms IS NOT NULL AND d.at >= :start AND d.at < :end AND :of(r)
          AND d.verdict NOT IN ('reject', 'escalate')
          AND r.risk NOT IN ('low', 'medium')
          AND d.check_asked ->> 'written' IS NOT NULL
    """,
    "time_without_answer": """
        SELECT d.took_ms / 1000.0 AS s FROM kept_decision d
        JOIN reviews_approvalrequest r ON r.id = d.request_id
        WHERE d.took_ms IS NOT NULL AND d.at >= :start AND d.at < :end AND :of(r)
          AND d.verdict NOT IN ('reject', 'escalate')
          AND r.risk NOT IN ('low', 'medium')
          AND d.check_asked ->> 'written' IS NULL
    """,
    "latency": """
        SELECT extract(epoch FROM r.settled_at - r.opened_at) AS s
        FROM reviews_approvalrequest r
        WHERE r.status IN ('authorized', 'rejected')
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r)
    """,
    "latency_reading": """
        SELECT coalesce(sum(d.took_ms), 0) / 1000.0 AS s
        FROM reviews_approvalrequest r JOIN reviews_decision d ON d.request_id = r.id
        WHERE r.status IN ('authorized', 'rejected')
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r) GROUP BY r.id
    """,
    "latency_waiting": """
        SELECT greatest(extract(epoch FROM r.settled_at - r.opened_at)
                        - coalesce(sum(d.took_ms), 0) / 1000.0, 0) AS s
        FROM reviews_approvalrequest r JOIN reviews_decision d ON d.request_id = r.id
        WHERE r.status IN ('authorized', 'rejected')
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r) GROUP BY r.id
    """,
    "escalation_answers": """
        SELECT extract(epoch FROM r.settled_at - min(d.at)) AS s
        FROM reviews_approvalrequest r JOIN reviews_decision d ON d.request_id = r.id
        WHERE r.status IN ('authorized', 'rejected') AND d.verdict = 'escalate'
          AND r.settled_at >= :start AND r.settled_at < :end AND :of(r) GROUP BY r.id
    """,
    "halting_time": """
        SELECT extract(epoch FROM max(l.at) - s.at) AS s
        FROM reviews_stop s JOIN journal_logrecord l
            ON s.key = l.agent || '/' || l.thread AND l.kind = 'request.withdrawn'
            AND l.at BETWEEN s.at AND s.lifted_at
        WHERE s.scope = 'thread' AND s.at >= :start AND s.at < :end GROUP BY s.id
    """,
}
# A value of each day and hour, and one of each place in a session.
WAITING = """
    FROM generate_series(:start, :end - interval '1 hour', interval '1 hour') h (at)
    JOIN reviews_approvalrequest r ON r.opened_at <= h.at
        AND coalesce(r.settled_at, 'infinity') > h.at
    WHERE :of(r) GROUP BY h.at
"""
HOURS = {
    "queue_depth": f"SELECT h.at, count(*) {WAITING}",
    "queue_slack": "SELECT h.at, round(extract(epoch FROM greatest(min(r.expires_at)"
    f" - h.at, interval '0'))) {WAITING}",
}
# The session of a decision begins with the last one that has none within half an hour
# before it.
DRIFT = """
    WITH begun AS MATERIALIZED (
        SELECT reviewer_id, at FROM kept_decision b
        WHERE verdict <> 'escalate' AND NOT EXISTS (
            SELECT FROM kept_decision e WHERE e.reviewer_id = b.reviewer_id
              AND e.verdict <> 'escalate' AND (e.at, e.id) < (b.at, b.id)
              AND e.at > b.at - interval '30 minutes')
    ), placed AS (
        SELECT d.*, (SELECT count(*) FROM (
            SELECT FROM kept_decision c WHERE c.reviewer_id = d.reviewer_id
              AND c.verdict <> 'escalate' AND (c.at, c.id) <= (d.at, d.id)
              AND c.at >= (SELECT max(at) FROM begun WHERE at <= d.at
                           AND reviewer_id = d.reviewer_id)
            ORDER BY c.at DESC LIMIT 60) AS upto) AS place
        FROM kept_decision d
        WHERE verdict <> 'escalate' AND at >= :start AND at < :end
    )
    SELECT least(place, 60) || :sep || kind AS bin
    FROM placed JOIN reviews_approvalrequest r ON r.id = request_id
    CROSS JOIN LATERAL unnest(ARRAY['all',
        CASE verdict WHEN 'approve' THEN 'approved' END]) kind
    WHERE kind IS NOT NULL AND :of(r)
"""


# Once the figures are computed, only a copy of the canaries' own rows is left of them:
# what a recount of agents' proposals finds cannot be a canary. The decisions that were
# not undone are apart, too.
CANARIES_APART = """
    CREATE TEMPORARY TABLE kept_decision ON COMMIT DROP AS
    SELECT * FROM reviews_decision WHERE (request_id, version) NOT IN (
        SELECT request_id, number - 1 FROM reviews_requestversion
        WHERE cause = 'recalled');
    CREATE INDEX ON kept_decision (reviewer_id, at);
    ANALYZE kept_decision;
    CREATE TEMPORARY TABLE canary_apart ON COMMIT DROP AS SELECT * FROM reviews_canary;
    SET LOCAL session_replication_role = replica;
    DELETE FROM reviews_canary;
    DELETE FROM reviews_approvalrequest WHERE canary;
    DELETE FROM reviews_proposal WHERE canary;
    SET LOCAL session_replication_role = origin;
"""


def summary(times: Times) -> list[int | None]:
    return [times.total, times.median, times.p90]


@pytest.fixture
def past(gate: Gate, proof_n: Callable[..., int]) -> int:
    n: int = proof_n(small=600, full=100_000)
    deciders = [gate.rita, gate.tom, gate.sue, gate.sam]
    generate_past(states.succeeded(gate), deciders, n, days=DAYS, last=LAST)
    for number in range(DAYS):
        day = LAST - timedelta(days=number)
        MetricDay.objects.create(day=day)
        assert rollups.compute_day(day=day)
    with connection.cursor() as cursor:
        cursor.execute(CANARIES_APART)
    return n


@pytest.mark.proof
def test_every_figure_equals_a_recount(
    past: int, record_proof: Callable[[str, str], None]
) -> None:
    measures = {measure.name: measure for measure in list_measures()}
    left, figures, cells = set(measures), 0, 0
    for tool, risk, first, last in FILTERS:
        days = (
            LAST - timedelta(days=DAYS - 1 - first),
            LAST - timedelta(days=DAYS - 1 - last),
        )
        period = Period(MetricFilters(tool, risk, *days))
        every = not (tool or risk) and first < last
        for name, bins, recounted in recount(period, measures):
            assert bins == recounted, (name, period.filters)
            assert bins or not every, f"nothing was made for {name}"
            figures += len(bins)
            left.discard(name)
        for slug, shown, recounted in recount_tables(period):
            assert shown == recounted, (slug, period.filters)
            assert shown or not every, f"nothing was made for {slug}"
            cells += sum(map(len, shown))
        check_slices(period)
    assert left == set()
    assert MetricRollup.objects.values("measure").distinct().count() == len(measures)
    record_proof(
        "statistics",
        f"{past:,} generated proposals over {DAYS} days: {len(measures)} measures for"
        f" {len(FILTERS)} filters, {figures:,} figures, and {cells:,} cells of the"
        " tables that are made of them, each equal to a recount",
    )


def check_slices(period: Period) -> None:
    """What a plot reads per tool, and per tool and risk level, is what it reads for
    just these."""
    filters = period.filters
    for plot in list_plots() if filters.tool else ():
        whole = replace(filters, tool="")
        readings = load_readings(whole, plot.measures, plot.sliced)
        alone = load_readings(filters, plot.measures)
        for measure in plot.sliced:
            found = readings.by_tool(measure).get(filters.tool, {})
            assert found == alone.bins(measure), (measure.name, filters)
            if filters.risk and measure.crossed:
                both = load_readings(replace(whole, risk=""), [], [measure])
                key = filters.tool, Risk(filters.risk)
                crossed = both.by_tool_and_risk(measure).get(key, {})
                assert crossed == found, (measure.name, filters)


def recount(period: Period, measures: dict[str, Measure]) -> list[tuple[str, Any, Any]]:
    """Name, what the page reads, and the recount, of each measure."""
    whole = not (period.filters.tool or period.filters.risk)
    found: list[tuple[str, Any, Any]] = []
    for name, sql in {**COUNTS, "decision_drift": DRIFT}.items():
        if whole or ":of" in sql:
            found.append((name, period.bins(measures[name]), period.count_bins(sql)))
    for name, sql in SECONDS.items():
        if whole or ":of" in sql:
            times = Times(period.bins(measures[name]))
            found.append((name, summary(times), period.percentiles(sql)))
    for name, interval in NOTICES.items():
        for channel, which in (
            ("mail", "n.channel = 'email' AND NOT n.digest"),
            ("digest", "n.channel = 'email' AND n.digest"),
            *((other, f"n.channel = '{other}'") for other in OTHER_CHANNELS),
        ):
            prefix = f"{channel}\x1f"
            bins = period.bins(measures[name])
            times = Times(
                {
                    key.removeprefix(prefix): count
                    for key, count in bins.items()
                    if key.startswith(prefix)
                }
            )
            sql = NOTICE.format(interval=interval, channel=which)
            found.append((name, summary(times), period.percentiles(sql)))
    for name, sql in HOURS.items():
        daily = load_readings(period.filters, [measures[name]]).daily(measures[name])
        hours = {
            datetime.combine(day, time(int(hour)), UTC): value
            for day, bins in daily.items()
            for hour, value in bins.items()
        }
        found.append((name, hours, {at: int(value) for at, value in period.fetch(sql)}))
    return found
