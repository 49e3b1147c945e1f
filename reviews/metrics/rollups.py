"""The daily figures: which days have to be computed again, and their computation.

Every change is in the audit log, so the log says what happened since the last run: each
new record marks its own day, and the days on which what it concerns is counted. A
marked day is computed from the gate's rows from scratch, so a late event and a repeated
run give the same figures as a single run.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db import connection, transaction

from journal import clock
from reviews import locks
from reviews.models import MetricDay, MetricRollup

from .plots import list_measures

CHUNK = 5_000  # log records that are read at once
MOST_CHUNKS = 20
MOST_DAYS = 10  # computed in one run
# Notices are kept for at least 7 days and requests stay open for at most 90; what
# happens later than this about a day no longer changes its figures.
LATEST = timedelta(days=100)

_MARK = """
WITH read AS MATERIALIZED (
    SELECT position.seq, record.kind, record.at, record.proposal, record.agent,
           record.thread
    FROM journal_logposition AS position
    JOIN journal_logrecord AS record ON record.id = position.record_id
    WHERE position.seq > %(after)s AND position.seq <= %(after)s + %(chunk)s
), concerned AS MATERIALIZED (
    SELECT proposal AS id FROM read WHERE proposal <> ''
    UNION
    SELECT execution.proposal_id FROM read
    JOIN reviews_reversal AS reversal ON reversal.proposal_id = read.proposal
    JOIN reviews_execution AS execution ON execution.id = reversal.execution_id
    UNION
    SELECT own.id FROM read
    JOIN reviews_proposal AS own
        ON own.agent = read.agent AND own.thread = read.thread
    WHERE read.kind = 'thread.finished'
), marked AS (
    SELECT at FROM read
    UNION ALL  -- today's row, so that records of the distant past are read once, too
    SELECT %(now)s FROM read
    UNION ALL
    SELECT request.settled_at FROM concerned
    JOIN reviews_approvalrequest AS request ON request.proposal_id = concerned.id
    WHERE request.settled_at IS NOT NULL
    UNION ALL
    SELECT proposal.created_at FROM concerned
    JOIN reviews_proposal AS proposal ON proposal.id = concerned.id
)
INSERT INTO reviews_metricday (day, due, through)
SELECT DISTINCT (at AT TIME ZONE 'UTC')::date, true, (SELECT max(seq) FROM read)
FROM marked WHERE at >= %(oldest)s
ON CONFLICT (day) DO UPDATE SET due = true, through = excluded.through
"""
# Something waits on every day, so each one has figures, also when nothing happened.
_ADD_DAYS = """
INSERT INTO reviews_metricday (day, due, through)
SELECT day::date, true, -1 FROM generate_series(
    (SELECT coalesce(min(day), %(today)s) FROM reviews_metricday
     WHERE day >= %(oldest)s)::timestamp,
    %(today)s::timestamp, interval '1 day') AS day
ON CONFLICT (day) DO UPDATE SET due = true WHERE reviews_metricday.day = %(today)s
"""


def update_rollups() -> int:
    """Mark the days that changed since the last run, and compute the newest of them.
    Returns how many were computed. Safe to repeat and to interrupt."""
    now = clock.now()
    for _ in range(MOST_CHUNKS):
        if not mark_changed_days(now=now):
            break
    due = MetricDay.objects.filter(due=True).order_by("-day")
    days = list(due.values_list("day", flat=True)[:MOST_DAYS])
    return sum(compute_day(day=day) for day in days)


def mark_changed_days(*, now: datetime) -> bool:
    """Mark the days that the next records of the log concern, and every day up to
    today. Returns whether the log may have more."""
    last = MetricDay.objects.order_by("-through").values_list("through", flat=True)
    after = last.first()
    values: dict[str, Any] = {
        "after": -1 if after is None else after,
        "chunk": CHUNK,
        "now": now,
        "oldest": now - LATEST,
        "today": now.astimezone(UTC).date(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_MARK, values)
        marked = bool(cursor.rowcount > 0)
        cursor.execute(_ADD_DAYS, values)
    return marked


@transaction.atomic(durable=True)
def compute_day(*, day: date) -> bool:
    """Compute the figures of one UTC day from the gate's rows, in place of those that
    are stored. Returns whether the day was due. Locks: the day."""
    found = locks.lock_metric_day(day)
    if found is None or not found.due:
        return False
    MetricRollup.objects.filter(day=day).delete()
    start = datetime.combine(day, time.min, UTC)
    values = {"day": day, "start": start, "end": start + timedelta(days=1)}
    with connection.cursor() as cursor:
        for measure in list_measures():
            cursor.execute(measure.sql, {**values, "measure": measure.name})
    now = clock.now()
    # Today goes on: the next run computes it again.
    found.due = values["end"] > now
    found.computed_at = now
    found.save(update_fields=["due", "computed_at"])
    return True
