"""Empties the database after a test that really commits.

Django would TRUNCATE. Here:
- the log's tables refuse every change by a trigger that even `replica` does not
  silence, so its owner, the test's role, puts it to sleep for this one transaction;
- foreign keys and the other triggers sleep through `session_replication_role`, which
  only a superuser may set: in tests the role of DATABASE_URL must be one;
- processes under test remember the ids of content types and permissions, so what
  migrations put there comes back with the same ids;
- TRUNCATE would wait for every reader; DELETE waits for nobody.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import redis
from django.conf import settings
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from psycopg.pq import TransactionStatus

from journal import high_water_mark, periods, restore_epochs

PRISTINE = "pristine"
ATTEMPTS = 5
KEPT = {"django_migrations"}
ALWAYS = """
    SELECT tgrelid::regclass::text, tgname FROM pg_trigger
    WHERE tgenabled = 'A' AND NOT tgisinternal
"""

# It began long before every row of a test, so that no row counts as one from a backup.
NEXT_EPOCH = """
    SET LOCAL session_replication_role = replica;
    DELETE FROM journal_epoch;
    SET LOCAL session_replication_role = origin;
    INSERT INTO journal_epoch
        (number, noticed_at, began_at, why, asked_by, reason, by, from_record)
    VALUES ({number}, '2000-01-01Z', '2000-01-01Z', 'told', 'one', '', 'other', 0)
"""
# Numbers of records go on in the period that began last; its tables are there.
PRESENT_PERIOD = f"""
    UPDATE journal_logperiod
    SET number = (SELECT last_value / {periods.BLOCK} FROM journal_logrecord_id_seq)
"""
_epochs = itertools.count(2)

PART = """
    SELECT pg_terminate_backend(pid), application_name, state, backend_start::text,
        left(query, 200)
    FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def remember() -> None:
    """Copy every table that is not empty after migrating into a schema of its own."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP SCHEMA IF EXISTS {PRISTINE} CASCADE")
        cursor.execute(f"CREATE SCHEMA {PRISTINE}")
        for table in _tables(cursor):
            cursor.execute(f'SELECT EXISTS (SELECT 1 FROM "{table}")')
            if cursor.fetchone() == (True,):
                copy = f'{PRISTINE}."{table}" AS TABLE public."{table}"'
                cursor.execute(f"CREATE TABLE {copy}")


def empty() -> None:
    """Bring every table back to what it held after migrating. A browser's last request
    may still be under way: then once more, when it is over."""
    for left in reversed(range(ATTEMPTS)):
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("; ".join(_statements(cursor)))
            return
        except OperationalError:  # a deadlock, or a lock that was not given in time
            if not left:
                raise


def part() -> None:
    """End every other session at the database, or it could not be dropped: a browser's
    last request may have left one behind. What they did is told."""
    with connection.cursor() as cursor:
        cursor.execute(PART)
        for row in cursor.fetchall():
            sys.stderr.write(f"ended at the database: {row}\n")


def close_interrupted_connection() -> None:
    """Give up the connection if a time-out stopped the driver in the middle of a
    statement: every later test of this process would fail on it."""
    raw = connection.connection
    if raw is None or raw.info.transaction_status is not TransactionStatus.ACTIVE:
        return
    raw.cancel_safe()  # its locks would stay until it ends
    raw.close()
    if not connection.in_atomic_block:  # else Django notices when it rolls back
        connection.close()


def teardown(self: Any) -> None:
    """In place of TransactionTestCase._fixture_teardown. Twice, for a web process may
    look in between."""
    forget()
    empty()
    forget()


def forget() -> None:
    """Remove the high-water mark: to know a database that was emptied for an older one
    is the product's task (journal/restore_epochs.py)."""
    known = settings.COUNTERSEAL.state
    for note in (known / "epoch", *known.glob("*/epoch")):
        note.unlink(missing_ok=True)
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as client:
        client.delete(high_water_mark.BROKER_KEY)
    restore_epochs.last_status = restore_epochs.EpochStatus()


def begin_epoch() -> None:
    """Begin an epoch that is newer than that of the test before, whose processes may
    still write what they know of its log, however late: such a mark then makes nobody
    take the emptied database for an older one."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(NEXT_EPOCH.format(number=next(_epochs)))


def _statements(cursor: CursorWrapper) -> Iterator[str]:
    cursor.execute(ALWAYS)
    always = cursor.fetchall()
    cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", [PRISTINE])
    pristine = [name for (name,) in cursor.fetchall()]
    yield "SET LOCAL session_replication_role = replica"
    for table, trigger in always:
        yield f"ALTER TABLE {table} DISABLE TRIGGER {trigger}"
    for table in _tables(cursor):
        yield f'DELETE FROM "{table}"'
    for table in pristine:
        yield f'INSERT INTO "{table}" SELECT * FROM {PRISTINE}."{table}"'
    yield PRESENT_PERIOD
    for table, trigger in always:
        yield f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}"


def _tables(cursor: CursorWrapper) -> list[str]:
    found = connection.introspection.table_names(cursor)
    return sorted(set(found) - KEPT)
