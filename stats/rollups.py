"""The daily figures: which days have to be computed again, and their computation.

Every change is in the audit log, so the log says what happened since the last run: each
new record marks its own day, and the days on which what it concerns is counted. A
marked day is computed from the gate's rows from scratch, so a late event and a repeated
run give the same figures as a single run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from time import monotonic
from typing import Any

from django.db import connection

from journal import clock, sweeps
from journal.operations import operation
from reviews import locks
from reviews.models import MetricDay, MetricRollup

from .plots import list_measures

CHUNK = 5_000  # log records that are read at once
MOST_CHUNKS = 20
BUDGET = timedelta(seconds=30)  # of one run, exceeded by at most one day
QUICK_MS = 1_000  # a day that took less need not rest
RESTS = 20  # a day rests for so many times as long as it took
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
    UNION ALL  -- a recall takes back votes, perhaps of the day before
    SELECT decision.at FROM read
    JOIN reviews_approvalrequest AS request ON request.proposal_id = read.proposal
    JOIN reviews_decision AS decision ON decision.request_id = request.id
    WHERE read.kind = 'request.recalled'
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
    """Mark the days that changed since the last run, and compute the newest of them,
    for at most about `BUDGET`. Returns how many were computed. Safe to repeat and to
    interrupt."""
    now, began = clock.now(), monotonic()
    for _ in range(MOST_CHUNKS):
        if not mark_changed_days(now=now):
            break
    computed = 0
    for row in MetricDay.objects.filter(due=True).order_by("-day"):
        if monotonic() - began > BUDGET.total_seconds():
            break
        if not _rests(row, now):
            computed += sweeps.run_each(lambda day: compute_day(day=day), [row.day])
    return computed


def _rests(row: MetricDay, now: datetime) -> bool:
    """Whether a day was computed so lately that doing it again would take more than a
    twentieth of a worker. Today is due all the time."""
    if row.computed_at is None or row.took_ms < QUICK_MS:
        return False
    return now - row.computed_at < RESTS * timedelta(milliseconds=row.took_ms)


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


def compute_day(*, day: date) -> bool:
    """Compute the figures of one UTC day from the gate's rows, in place of those that
    are stored. Returns whether the day was due.

    The rows are read outside of the transaction that stores the figures: reading can
    take long, and the log gets no order while a writing transaction is open.
    """
    row = MetricDay.objects.filter(day=day, due=True).first()
    if row is None:
        return False
    began = monotonic()
    figures = list(_read_figures(day))
    took_ms = round((monotonic() - began) * 1000)
    return store_day(day=day, figures=figures, through=row.through, took_ms=took_ms)


def _read_figures(day: date) -> Iterator[MetricRollup]:
    start = datetime.combine(day, time.min, UTC)
    values = {"start": start, "end": start + timedelta(days=1)}
    for measure in list_measures():
        for tool, risk, bins in measure.figures.fetch_all(**values):
            yield MetricRollup(
                day=day, measure=measure.name, tool=tool, risk=risk, bins=bins
            )


@operation(locks="the day", writes="MetricDay, MetricRollup")
def store_day(
    *, day: date, figures: Sequence[MetricRollup], through: int, took_ms: int
) -> bool:
    """Store the figures of a day. Returns False when a run with newer figures was
    first. `through` is what the log had marked when they were read: a later mark keeps
    the day due."""
    row = locks.lock_metric_day(day)
    if row is None or not row.due:
        return False
    MetricRollup.objects.filter(day=day).delete()
    MetricRollup.objects.bulk_create(figures, batch_size=1_000)
    now = clock.now()
    # Today goes on: the next run computes it again.
    goes_on = datetime.combine(day, time.min, UTC) + timedelta(days=1) > now
    row.due = goes_on or row.through != through
    row.computed_at = now
    row.took_ms = took_ms
    row.save(update_fields=["due", "computed_at", "took_ms"])
    return True
