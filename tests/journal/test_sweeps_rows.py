"""One row that fails: the others of its sweep are handled, and the log names it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection, transaction
from structlog.testing import capture_logs

from journal import sweeps
from journal.errors import DatabaseRestored
from journal.models import OutboxMessage

pytestmark = pytest.mark.django_db(transaction=True)


def make_messages(*topics: str) -> list[OutboxMessage]:
    rows = [OutboxMessage(topic=topic, task="t") for topic in topics]
    return OutboxMessage.objects.bulk_create(rows)


def rename(message: OutboxMessage) -> int:
    """One operation; the database cannot store the topic `bad`."""
    with transaction.atomic(durable=True):
        topic = "x" * 5000 if message.topic == "bad" else "done"
        return OutboxMessage.objects.filter(pk=message.pk).update(topic=topic)


def rename_all(rows: list[OutboxMessage]) -> None:
    for row in rows:
        OutboxMessage.objects.filter(pk=row.pk).update(task="seen")
        row.task = "seen"
        if row.topic == "bad":
            OutboxMessage.objects.filter(pk=row.pk).update(topic="x" * 5000)


def test_a_failing_row_is_logged_and_the_others_are_handled() -> None:
    rows = make_messages("a", "bad", "b")
    with capture_logs() as logged:
        assert sweeps.run_each(rename, rows) == 2
    found = OutboxMessage.objects.order_by("pk").values_list("topic", flat=True)
    assert list(found) == ["done", "bad", "done"]
    (entry,) = [one for one in logged if one["event"] == "sweep.row_failed"]
    assert (entry["row"], entry["operation"]) == (str(rows[1].pk), "rename")


def test_a_task_that_must_repeat_fails_after_the_others() -> None:
    rows = make_messages("bad", "a")
    with pytest.raises(Exception, match="too long"):
        sweeps.run_each(rename, rows, must_repeat=True)
    assert OutboxMessage.objects.filter(topic="done").count() == 1


def test_a_row_among_many_in_one_transaction_fails_alone() -> None:
    rows = make_messages("a", "bad", "b")
    with capture_logs() as logged, transaction.atomic():
        done = sweeps.apply_to_all(rename_all, rows)
    assert [row.topic for row in done] == ["a", "b"]
    found = OutboxMessage.objects.order_by("pk").values_list("task", flat=True)
    assert list(found) == ["seen", "t", "seen"]
    assert rows[1].task == "seen"  # as it was tried last; nobody uses the row
    assert [one["row"] for one in logged] == [str(rows[1].pk)]


def raise_limit(row: OutboxMessage) -> int:
    raise SoftTimeLimitExceeded


def raise_restored(row: OutboxMessage) -> int:
    raise DatabaseRestored


def lose_connection(row: OutboxMessage) -> int:
    connection.close()
    raise ValueError("the connection is gone")


@pytest.mark.parametrize("operation", [raise_limit, raise_restored, lose_connection])
def test_what_stops_the_whole_sweep_is_raised(
    operation: Callable[[OutboxMessage], int],
) -> None:
    rows = make_messages("a", "b")
    with pytest.raises((SoftTimeLimitExceeded, DatabaseRestored, ValueError)):
        sweeps.run_each(operation, rows)
