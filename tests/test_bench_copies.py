"""Copies of a real action: they end as it ended, and write as many rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from pytest_django import Settings

from bench import bulk_actions, clients, seed
from bench.bulk_actions import INSERTS
from journal import tasks
from journal.models import LogRecord, OutboxMessage
from reviews.models import ApprovalRequest, Execution, Grant

pytestmark = pytest.mark.django_db(transaction=True)
COPIES = 30


@pytest.fixture
def writer() -> Iterator[psycopg.Connection[Any]]:
    url, name = settings.COUNTERSEAL.database_url, connection.settings_dict["NAME"]
    with psycopg.connect(url, dbname=str(name), autocommit=True) as writer:
        yield writer


@pytest.fixture
def performed(settings: Settings) -> str:
    """The proposal of one finished action of the benchmark."""
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"callables": ["bench"]}
    )
    client = clients.ProductClient(seed.seed_database(), 0)
    request = client.decide(client.propose())
    client.perform(request.proposal_id)
    return request.proposal_id


def count_rows(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM {table}")
        return int(cursor.fetchone()[0])


def test_copies_end_as_the_action_did(
    writer: psycopg.Connection[Any], performed: str
) -> None:
    before = {table: count_rows(table) for table in INSERTS}
    records = LogRecord.objects.filter(proposal=performed).count()
    pattern = bulk_actions.load_pattern(writer, performed)
    assert list(bulk_actions.write_actions(writer, pattern, COPIES)) == [COPIES]
    counts = {table: count_rows(table) - before[table] for table in INSERTS}
    assert counts["journal_logrecord"] == records * COPIES
    assert counts["agents_thread"] == COPIES // 10
    assert counts["reviews_revision"] == counts["reviews_grant"] == COPIES
    assert not ApprovalRequest.objects.exclude(status="authorized").exists()
    assert not Grant.objects.exclude(status="spent").exists()
    assert not Execution.objects.exclude(status="succeeded").exists()
    copied = OutboxMessage.objects.filter(subject__contains="bulk")
    assert copied.count() == counts["journal_outboxmessage"] > COPIES
    assert not copied.filter(done_at=None).exists()
    tasks.sequence()  # the log takes them like any others
    assert not LogRecord.objects.filter(position=None).exists()


def test_an_unfinished_action_has_no_copies(
    writer: psycopg.Connection[Any], performed: str
) -> None:
    with pytest.raises(LookupError, match="p-none is no finished action"):
        bulk_actions.load_pattern(writer, "p-none")
