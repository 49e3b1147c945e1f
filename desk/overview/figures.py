"""What the overview counts, each in one statement over an index: the queues, the last
hours, and who decided."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from policies.models import Person
from reviews.choices import ANSWERED_SQL, DECIDED_SQL

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
WEEK = timedelta(days=7)
SOON = timedelta(minutes=10)
MAX_COUNTED = 10_000  # waiting requests of a queue that are counted
# A canary is a request for the one person whom it is for, and for nobody else.
_SEEN = "request.canary_for IN ('', %(me)s)"
_QUEUES = f"""
WITH arrived AS (
  SELECT request.queue_id, count(*) AS n FROM reviews_approvalrequest AS request
  WHERE request.opened_at > %(now)s - %(hour)s AND {_SEEN} GROUP BY request.queue_id),
decided AS (
  SELECT request.queue_id, count(*) AS n FROM reviews_approvalrequest AS request
  WHERE request.settled_at > %(now)s - %(hour)s
    AND request.status IN ({DECIDED_SQL}) AND {_SEEN}
  GROUP BY request.queue_id)
SELECT queue.id, queue.name, queue.title, waiting.n, waiting.soon, waiting.oldest,
  coalesce(arrived.n, 0), coalesce(decided.n, 0), expired.n
FROM policies_queue AS queue
CROSS JOIN LATERAL (
  SELECT count(*) AS n, min(open.opened_at) AS oldest,
    count(*) FILTER (WHERE open.expires_at < %(now)s + %(soon)s) AS soon
  FROM (SELECT request.opened_at, request.expires_at
        FROM reviews_approvalrequest AS request
        WHERE request.status = 'pending' AND request.queue_id = queue.id
          AND request.expires_at > %(now)s AND {_SEEN} LIMIT {MAX_COUNTED}) AS open
) AS waiting
CROSS JOIN LATERAL (
  SELECT count(*) AS n FROM reviews_approvalrequest AS request
  WHERE request.status = 'expired' AND request.queue_id = queue.id
    AND request.settled_at > %(now)s - %(week)s AND {_SEEN}) AS expired
LEFT JOIN arrived ON arrived.queue_id = queue.id
LEFT JOIN decided ON decided.queue_id = queue.id
WHERE queue.id = ANY (%(queues)s)
ORDER BY queue.title
"""  # noqa: S608 constants
_HOURS = f"""
SELECT floor(extract(epoch FROM moment.at - %(since)s) / 3600)::int AS hour,
  moment.kind, count(*)
FROM (
  SELECT request.opened_at AS at, 'arrived' AS kind
  FROM reviews_approvalrequest AS request
  WHERE request.opened_at >= %(since)s AND request.opened_at <= %(now)s
    AND request.queue_id = ANY (%(queues)s) AND {_SEEN}
  UNION ALL
  SELECT request.settled_at, CASE request.status WHEN 'expired' THEN 'expired'
                             ELSE 'decided' END
  FROM reviews_approvalrequest AS request
  WHERE request.settled_at >= %(since)s AND request.settled_at <= %(now)s
    AND request.status IN ({ANSWERED_SQL})
    AND request.queue_id = ANY (%(queues)s) AND {_SEEN}
) AS moment
GROUP BY 1, 2
"""  # noqa: S608 constants
# Who voted on a request stays hidden until it is decided.
_DECIDERS = f"""
SELECT vote.reviewer_id, count(*),
  count(*) FILTER (WHERE vote.verdict = 'approve'),
  count(*) FILTER (WHERE vote.verdict = 'reject'),
  count(*) FILTER (WHERE vote.verdict = 'modify'),
  percentile_cont(0.5) WITHIN GROUP (ORDER BY vote.took_ms)
FROM reviews_decision AS vote
JOIN reviews_approvalrequest AS request ON request.id = vote.request_id
WHERE vote.at > %(now)s - %(day)s AND request.status IN ({ANSWERED_SQL})
  AND request.queue_id = ANY (%(queues)s) AND {_SEEN}
GROUP BY vote.reviewer_id ORDER BY 2 DESC, 1 LIMIT 20
"""  # noqa: S608 constants


@dataclass(frozen=True, slots=True)
class QueueCount:
    """One queue now: what waits, and the last hour's pace."""

    pk: int
    name: str
    title: str
    waiting: int
    soon: int  # expire within ten minutes
    oldest: datetime | None
    arrived: int  # in the last hour
    decided: int  # in the last hour
    expired: int  # in the last seven days


@dataclass(frozen=True, slots=True)
class DeciderCount:
    """What one person decided in a day, of what is decided by now."""

    pk: int
    decided: int
    approved: int
    rejected: int
    modified: int
    median_ms: float | None


def count_queues(
    person: Person, queues: Collection[int], now: datetime
) -> list[QueueCount]:
    """Count each of these queues, by title."""
    given = {"soon": SOON, "week": WEEK}
    return [QueueCount(*row) for row in _fetch(_QUEUES, person, now, queues, **given)]


def count_hours(
    person: Person, queues: Collection[int], since: datetime, now: datetime
) -> dict[tuple[int, str], int]:
    """Count what arrived, was decided and expired in each hour from `since` on."""
    rows = _fetch(_HOURS, person, now, queues, since=since)
    return {(hour, kind): n for hour, kind, n in rows}


def count_deciders(
    person: Person, queues: Collection[int], now: datetime
) -> list[DeciderCount]:
    """Count what each person decided in the last day, most first."""
    rows = _fetch(_DECIDERS, person, now, queues, day=DAY)
    return [DeciderCount(*row) for row in rows]


def _fetch(
    sql: str, person: Person, now: datetime, queues: Collection[int], **given: Any
) -> list[Any]:
    given |= {"me": person.public_id, "now": now, "hour": HOUR, "queues": list(queues)}
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return list(cursor.fetchall())
