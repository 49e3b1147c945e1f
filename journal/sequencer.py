"""Assigns log records their positions: dense, once, and in one permanent order.

It places only records of transactions older than every open one, so no record can
appear later that belongs before one already placed (gate.md section 8). Transaction ids
must not go backwards: after a restore from a logical dump, start the new cluster's
counter above the old one's.
"""

from __future__ import annotations

from django.db import connection, transaction

from . import failpoints

LIMIT = 10_000
LOCK = 0x686F6C64_6C6F6701  # an arbitrary unique number: "hold" "log" 1 in ASCII

# The leaf hash is RFC 6962's: SHA-256(0x00 || leaf).
_PLACE = r"""
    WITH last AS MATERIALIZED (
        SELECT position.seq, record.xid, record.id
        FROM journal_logposition position
        JOIN journal_logrecord record ON record.id = position.record_id
        ORDER BY position.seq DESC
        LIMIT 1
    ), fresh AS MATERIALIZED (
        SELECT xid, id, leaf
        FROM journal_logrecord
        WHERE xid < pg_snapshot_xmin(pg_current_snapshot())
          AND (xid, id) > (
              coalesce((SELECT xid FROM last), '0'::xid8),
              coalesce((SELECT id FROM last), 0)
          )
        ORDER BY xid, id
        LIMIT %s
    )
    INSERT INTO journal_logposition (seq, record_id, leaf_hash)
    SELECT
        coalesce((SELECT seq FROM last), -1) + row_number() OVER (ORDER BY xid, id),
        id,
        sha256('\x00'::bytea || leaf)
    FROM fresh
"""


@transaction.atomic(durable=True)
def sequence_records(limit: int = LIMIT) -> int:
    """Place up to `limit` records and return how many. Returns 0 as well when another
    process holds the lock.

    Locks: the sequencer's advisory lock, until the end of the transaction.
    """
    with connection.cursor() as cursor:
        # A separate statement: the INSERT must take its snapshot under the lock.
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [LOCK])
        (locked,) = cursor.fetchone()
        if not locked:
            return 0
        cursor.execute(_PLACE, [limit])
        failpoints.point("sequence_uncommitted")
        return int(cursor.rowcount)
