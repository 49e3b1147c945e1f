"""The database itself refuses to change or remove what the log says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction

from journal import log
from journal.models import LogPeriod, LogPosition, LogRecord

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, tzinfo=UTC)
STATEMENTS = [
    "UPDATE journal_logrecord SET kind = 'x'",
    "DELETE FROM journal_logrecord",
    "TRUNCATE journal_logrecord CASCADE",
    "UPDATE journal_logrecord SET kind = 'x' WHERE false",
    "UPDATE journal_logposition SET seq = 9",
    "DELETE FROM journal_logposition",
    "TRUNCATE journal_logposition",
    "DELETE FROM journal_logposition WHERE false",
    "UPDATE journal_logrecord_{period} SET kind = 'x'",
    "DELETE FROM journal_logrecord_{period}",
    "TRUNCATE journal_logrecord_{period} CASCADE",
    "UPDATE journal_logposition_{period} SET seq = 9",
    "DELETE FROM journal_logposition_{period}",
    "TRUNCATE journal_logposition_{period}",
]


@pytest.fixture
def placed():
    log.append("a.b", actor=log.SYSTEM, at=AT)
    record = LogRecord.objects.get()
    place = LogPosition.objects.create(seq=0, record=record, leaf_hash=b"")
    with connection.cursor() as cursor:  # or TRUNCATE fails for its open checks
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    return place


def refused(sql: str) -> str:
    with (
        pytest.raises(DatabaseError) as caught,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql.format(period=LogPeriod.objects.latest("number").number))
    return str(caught.value)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_update_delete_and_truncate_are_refused(placed, sql):
    assert "append-only" in refused(sql)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_replica_role_does_not_get_past_it(placed, sql):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
    assert "append-only" in refused(sql)
