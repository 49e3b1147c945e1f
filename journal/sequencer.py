"""Assigns log records their positions: dense, once, and in one permanent order.

The order is by period, then by transaction id, then by id. Within the newest period
only records of transactions older than every open one are placed, so no record can
appear later that belongs before one already placed. When a later period exists, all of
this one is committed (journal/periods.py).

A transaction that stays open therefore holds the whole log back, whatever database of
the server it is in, once it has written. `find_delay` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection

from . import failpoints, periods, sweeps
from .models import LogPeriod
from .operations import operation

LIMIT = 10_000
LOCK = 0x686F6C64_6C6F6701  # an arbitrary unique number: "hold" "log" 1 in ASCII

_PRESENT = """
SELECT number, first_seq,
       (SELECT min(number) FROM journal_logperiod AS later
        WHERE later.number > present.number)
FROM journal_logperiod AS present
WHERE first_seq IS NOT NULL ORDER BY number DESC LIMIT 1
"""
_LAST = """
SELECT position.seq, record.xid::text, record.id
FROM journal_logposition AS position
JOIN journal_logrecord AS record ON record.id = position.record_id
WHERE position.record_id >= %(low)s AND position.record_id < %(high)s
  AND record.id >= %(low)s AND record.id < %(high)s
ORDER BY position.seq DESC
LIMIT 1
"""
# Every statement names the ids of one period, so that its plan has one partition.
_IN_PERIOD = "record.id >= %(low)s AND record.id < %(high)s"
_AFTER_LAST = f"{_IN_PERIOD} AND (record.xid, record.id) > (%(xid)s::xid8, %(id)s)"
_ENDED = "record.xid < pg_snapshot_xmin(pg_current_snapshot())"
_UNPLACED = """NOT EXISTS (
    SELECT FROM journal_logposition AS own WHERE own.record_id = record.id
        AND own.record_id >= %(low)s AND own.record_id < %(high)s)"""
# What a restored server wrote before its own period began may have lower transaction
# ids than the record placed last. Its ids are above those of the backup; the margin is
# for those that were drawn and written at the same time.
_MARGIN = 1_000_000
_LEFT_OVER = f"""{_IN_PERIOD} AND {_UNPLACED} AND record.id > (
    SELECT coalesce(max(placed.record_id), %(low)s) - {_MARGIN}
    FROM journal_logposition AS placed
    WHERE placed.record_id >= %(low)s AND placed.record_id < %(high)s)"""  # noqa: S608
# The leaf hash is RFC 6962's: SHA-256(0x00 || leaf).
_PLACE = r"""
INSERT INTO journal_logposition (seq, record_id, leaf_hash)
SELECT %(seq)s + row_number() OVER (ORDER BY xid, id), id,
       sha256('\x00'::bytea || leaf)
FROM (SELECT record.xid, record.id, record.leaf FROM journal_logrecord AS record
      WHERE {which} ORDER BY record.xid, record.id LIMIT %(limit)s) AS fresh
"""
_PLACE_ENDED = _PLACE.format(which=f"{_AFTER_LAST} AND {_ENDED}")
_PLACE_CLOSED = _PLACE.format(which=f"{_AFTER_LAST} AND {_UNPLACED}")
_PLACE_LEFT_OVER = _PLACE.format(which=_LEFT_OVER)
_IS_LEFT = f"""
SELECT EXISTS (SELECT FROM journal_logrecord AS record
               WHERE {_AFTER_LAST} AND {_UNPLACED})
    OR EXISTS (SELECT FROM journal_logrecord AS record WHERE {_LEFT_OVER})
"""  # noqa: S608 constants
# Records that wait are counted no further: the count takes a tenth of a second then.
MOST_COUNTED = 100_000
# The session's query is left out on purpose: it may hold private values.
_DELAY = f"""
WITH oldest AS MATERIALIZED (
    (SELECT record.xid, record.at FROM journal_logrecord AS record
     WHERE {_AFTER_LAST} ORDER BY record.xid, record.id LIMIT 1)
    UNION ALL
    (SELECT record.xid, record.at FROM journal_logrecord AS record
     WHERE record.id >= %(high)s ORDER BY record.id LIMIT 1)
    LIMIT 1
), late AS MATERIALIZED (
    SELECT oldest.at, clock_timestamp() - oldest.at AS age,
           oldest.xid >= horizon AND NOT %(closed)s AS held_back, horizon
    FROM oldest, pg_snapshot_xmin(pg_current_snapshot()) AS horizon
    WHERE oldest.at < clock_timestamp() - make_interval(secs => %(limit)s)
)
SELECT late.at, extract(epoch FROM late.age), late.held_back,
       (SELECT count(*) FROM (SELECT FROM journal_logrecord AS record
                              WHERE ({_AFTER_LAST}) OR record.id >= %(high)s
                              LIMIT {MOST_COUNTED}) AS counted),
       session.pid, session.application_name,
       extract(epoch FROM clock_timestamp() - session.xact_start)
FROM late
LEFT JOIN pg_stat_activity AS session
    ON late.held_back AND session.backend_xid = late.horizon::xid
"""  # noqa: S608 constants


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the sequencer is: a period, and the record that was placed last in it, or
    the beginning. `following` is the number of the next period, if there is one."""

    number: int
    following: int | None
    seq: int = -1
    xid: str = "0"
    id: int = 0

    def list_values(self) -> dict[str, int | str | bool]:
        """The parameters of the statements above."""
        low, high = periods.compute_ids(self.number)
        return {
            "low": low,
            "high": high,
            "closed": self.following is not None,
            "seq": self.seq,
            "xid": self.xid,
            "id": self.id,
        }


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
        values = _load_place().list_values()
        cursor.execute(_DELAY, {**values, "limit": limit})
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


@operation(locks="the sequencer (advisory)", writes="LogPosition, LogPeriod")
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
        placed = 0
        while True:
            placed += sweeps.apply_in_pieces(_place_records, limit - placed)
            if placed == limit or not _open_following():
                break
        failpoints.point("sequence_uncommitted")
        return placed


def _load_place() -> _Place:
    with connection.cursor() as cursor:
        cursor.execute(_PRESENT)
        number, first_seq, following = cursor.fetchone()
        low, high = periods.compute_ids(number)
        cursor.execute(_LAST, {"low": low, "high": high})
        last = cursor.fetchone() or (first_seq - 1, "0", 0)
    return _Place(number, following, *last)


def _place_records(limit: int) -> int:
    place = _load_place()
    values = {**place.list_values(), "limit": limit}
    with connection.cursor() as cursor:
        if place.following is None:
            cursor.execute(_PLACE_ENDED, values)
            return int(cursor.rowcount)
        cursor.execute(_PLACE_CLOSED, values)
        if not cursor.rowcount:
            cursor.execute(_PLACE_LEFT_OVER, values)
        return int(cursor.rowcount)


def _open_following() -> bool:
    """Go on to the next period, once all of this one is placed; return whether."""
    place = _load_place()
    if place.following is None:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_IS_LEFT, place.list_values())
        (left,) = cursor.fetchone()
    if left:
        return False
    LogPeriod.objects.filter(number=place.following).update(first_seq=place.seq + 1)
    return True
