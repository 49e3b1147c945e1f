"""Assigns log records their positions: dense, once, and in one permanent order.

It places only records of transactions older than every open one, so no record can
appear later that belongs before one already placed. Transaction ids must not go
backwards: after a restore from a logical dump, start the new cluster's counter above
the old one's.

A transaction that stays open therefore holds the whole log back, whatever database of
the server it is in, once it has written. `find_delay` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from . import failpoints, sweeps
from .operations import operation

LIMIT = 10_000
LOCK = 0x686F6C64_6C6F6701  # an arbitrary unique number: "hold" "log" 1 in ASCII

_LAST = """
    WITH last AS MATERIALIZED (
        SELECT position.seq, record.xid, record.id
        FROM journal_logposition position
        JOIN journal_logrecord record ON record.id = position.record_id
        ORDER BY position.seq DESC
        LIMIT 1
    )"""
_AFTER_LAST = """(xid, id) > (
              coalesce((SELECT xid FROM last), '0'::xid8),
              coalesce((SELECT id FROM last), 0)
          )"""
# The leaf hash is RFC 6962's: SHA-256(0x00 || leaf).
_PLACE = rf"""{_LAST}, fresh AS MATERIALIZED (
        SELECT xid, id, leaf
        FROM journal_logrecord
        WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
          AND {_AFTER_LAST}
        ORDER BY xid, id
        LIMIT %s
    )
    INSERT INTO journal_logposition (seq, record_id, leaf_hash)
    SELECT
        coalesce((SELECT seq FROM last), -1) + row_number() OVER (ORDER BY xid, id),
        id,
        sha256('\x00'::bytea || leaf)
    FROM fresh
"""  # noqa: S608 constants
# Records that wait are counted no further: the count takes a tenth of a second then.
MOST_COUNTED = 100_000
# The session's query is left out on purpose: it may hold private values.
_DELAY = f"""{_LAST}, oldest AS MATERIALIZED (
        SELECT xid, at
        FROM journal_logrecord
        WHERE {_AFTER_LAST}
        ORDER BY xid, id
        LIMIT 1
    ), late AS MATERIALIZED (
        SELECT oldest.at, clock_timestamp() - oldest.at AS age,
               oldest.xid >= horizon AS held_back, horizon
        FROM oldest, pg_snapshot_xmin(pg_current_snapshot()) AS horizon
        WHERE oldest.at < clock_timestamp() - make_interval(secs => %s)
    )
    SELECT late.at, extract(epoch FROM late.age), late.held_back,
           (SELECT count(*) FROM (SELECT FROM journal_logrecord
                                  WHERE {_AFTER_LAST} LIMIT {MOST_COUNTED}) AS counted),
           session.pid, session.application_name,
           extract(epoch FROM clock_timestamp() - session.xact_start)
    FROM late
    LEFT JOIN pg_stat_activity AS session
        ON late.held_back AND session.backend_xid = late.horizon::xid
"""  # noqa: S608 constants


@dataclass(frozen=True, slots=True)
class LogDelay:
    """Records that have waited too long for their positions.

    `since` is the time of the oldest one and `seconds` its age. `waiting` is at most
    `MOST_COUNTED`. `held_back` is true while an older transaction is open: that of the
    session `pid` of the program `application`, for `open_seconds`. Without a session it
    is a prepared transaction (`PREPARE TRANSACTION`). When `held_back` is false, the
    sequencer itself is late.
    """

    since: datetime
    seconds: float
    held_back: bool
    waiting: int
    pid: int | None
    application: str
    open_seconds: float | None  # None also when this role may not see it


def find_delay(limit: float) -> LogDelay | None:
    """Records that have waited for more than `limit` seconds, or None."""
    with connection.cursor() as cursor:
        cursor.execute(_DELAY, [limit])
        row = cursor.fetchone()
    if row is None:
        return None
    since, seconds, held_back, waiting, pid, application, open_seconds = row
    return LogDelay(
        since=since,
        seconds=float(seconds),
        held_back=held_back,
        waiting=waiting,
        pid=pid,
        application=application or "",
        open_seconds=None if open_seconds is None else float(open_seconds),
    )


@operation(locks="the sequencer (advisory)", writes="LogPosition")
def sequence_records(limit: int = LIMIT) -> int:
    """Place up to `limit` records and return how many. Returns 0 as well when another
    process holds the lock. A record that cannot be placed holds back those behind it,
    because positions are dense and in one order; those before it get theirs."""
    with connection.cursor() as cursor:
        # A separate statement: the INSERT must take its snapshot under the lock.
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        (locked,) = cursor.fetchone()
        if not locked:
            return 0
        placed = sweeps.apply_in_pieces(_place_records, limit)
        failpoints.point("sequence_uncommitted")
        return placed


def _place_records(limit: int) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_PLACE, [limit])
        return int(cursor.rowcount)
