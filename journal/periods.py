"""Periods of the log: a new one begins each month and after a restore.

The records of a period have ids of one block, and its tables are partitions of the
log's. While a period begins, no transaction that writes the log is open. So every
record of an earlier period is committed by then, and comes first in the order of the
log, whatever the transaction ids of the two are: a database that was loaded into a new
server counts them from the beginning (journal/sequencer.py).
"""

from __future__ import annotations

from datetime import UTC, datetime

import structlog
from django.db import OperationalError, connection
from psycopg.errors import LockNotAvailable

from . import clock, log, transactions
from .errors import Conflict
from .models import LogPeriod
from .operations import operation

BLOCK = 10_000_000_000  # ids of one period; the same in migrations/0002_triggers.py
NEARLY_FULL = BLOCK // 10 * 9
# Writers wait behind the one who waits for their lock, so nobody waits for long.
SWEEP_PATIENCE_MS = 100
PERSON_PATIENCE_MS = 3000
MONTH, RESTORE, COUNTER, FULL = "month", "restore", "counter", "full"

logger = structlog.get_logger(__name__)

# What this server committed has a lower transaction id than a snapshot's end.
_READ_NEWEST = """
SELECT began_at,
       (SELECT id >= journal_period_start() + %(nearly_full)s FROM journal_logrecord
        WHERE id >= journal_period_start() ORDER BY id DESC LIMIT 1),
       (SELECT xid >= pg_snapshot_xmax(pg_current_snapshot())
               AND xid IS DISTINCT FROM pg_current_xact_id_if_assigned()
        FROM journal_logrecord
        WHERE id >= journal_period_start() ORDER BY xid DESC, id DESC LIMIT 1)
FROM journal_logperiod ORDER BY number DESC LIMIT 1
"""


def compute_ids(number: int) -> tuple[int, int]:
    """The lowest id of a period, and the lowest above all of its ids."""
    return number * BLOCK, (number + 1) * BLOCK


def begin_due_period() -> str:
    """Begin a period if one is due: in a new month, when the block of ids is nearly
    used up, or when the server counts transactions from below the log's. Returns why,
    "" for none. While a transaction that wrote the log stays open, the next sweep tries
    again."""
    if not find_due_reason():
        return ""
    try:
        return _begin_if_due()
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        logger.info("log.period_waits")
        return ""


def find_due_reason() -> str:
    """Why a period is due, "" while none is."""
    with connection.cursor() as cursor:
        cursor.execute(_READ_NEWEST, {"nearly_full": NEARLY_FULL})
        began_at, full, ahead = cursor.fetchone()
    if ahead:
        return COUNTER
    if full:
        return FULL
    return MONTH if _get_month(began_at) < _get_month(clock.now()) else ""


def _get_month(at: datetime) -> tuple[int, int]:
    moment = at.astimezone(UTC)
    return moment.year, moment.month


@operation(
    entry="begin_due_period",
    locks="the periods (table), the log (SHARE)",
    writes="LogPeriod",
    logs="log.period_began",
)
def _begin_if_due() -> str:
    _lock_periods()
    if why := find_due_reason():  # another sweep may have been here
        begin_period(why=why, patience_ms=SWEEP_PATIENCE_MS)
    return why


def begin_period_after_restore(*, above: int) -> LogPeriod:
    """Begin a period whose ids are above the id `above`, so that no id of the lost
    history is used again. Raises Conflict while other transactions that wrote the log
    stay open. Caller holds a transaction."""
    _lock_periods()
    try:
        return begin_period(why=RESTORE, patience_ms=PERSON_PATIENCE_MS, above=above)
    except OperationalError as error:
        if not isinstance(error.__cause__, LockNotAvailable):
            raise
        raise Conflict(
            "Somebody else is writing the log. Nothing was changed. Try again."
        ) from error


def begin_period(*, why: str, patience_ms: int, above: int = 0) -> LogPeriod:
    """Begin the next period, above the id `above`. Raises OperationalError when others
    do not finish writing the log within `patience_ms`. Caller holds a transaction and
    the lock of the periods."""
    transactions.require_transaction("Beginning a period")
    newest = LogPeriod.objects.latest("number").number
    number = max(newest, above // BLOCK) + 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout')")
        (patience,) = cursor.fetchone()
        cursor.execute(
            "SELECT set_config('lock_timeout', %s, true)", [f"{patience_ms}"]
        )
        cursor.execute("SELECT journal_create_period(%s)", [number])
        # From here on nobody writes the log until this transaction ends. ONLY: a vacuum
        # of a partition need not end first.
        cursor.execute("LOCK TABLE ONLY journal_logrecord IN SHARE MODE")
        # Unlike setval(), this is undone when the transaction is.
        restart = "ALTER SEQUENCE journal_logrecord_id_seq RESTART WITH"
        cursor.execute(f"{restart} {compute_ids(number)[0]}")
        cursor.execute("SELECT set_config('lock_timeout', %s, true)", [patience])
    period = LogPeriod.objects.create(number=number, began_at=clock.now(), why=why)
    # A period has a record from its beginning (journal_period_start).
    log.append(
        "log.period_began",
        actor=log.SYSTEM,
        at=period.began_at,
        data={"period": number, "code": why},
    )
    return period


def _lock_periods() -> None:
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE journal_logperiod IN SHARE ROW EXCLUSIVE MODE")
