"""The sweep sends what is due once more, on the real broker, as far as it has room."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
import redis
from django.db import connection, transaction
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from hitl.celery import app
from journal import clock, dispatch, failpoints, outbox, sweeps, tasks
from journal.models import OutboxMessage

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("broker"),
]

MAIL, EFFECT = "request.settled", "execution.queued"


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The broker cannot be reached."""
    with app.connection_for_write("redis://127.0.0.1:1/0") as nowhere:
        producer = app.amqp.Producer(nowhere, auto_declare=False)
        monkeypatch.setattr(app, "producer_or_acquire", lambda *_: producer)
        gone = redis.Redis(port=1)
        monkeypatch.setattr(dispatch, "_connect_broker", lambda _: gone)
        yield


def taken(queue: str) -> list[Any]:
    """Takes all messages of a queue."""
    with app.connection_for_read() as connected:
        take = partial(connected.default_channel.basic_get, queue, no_ack=True)
        return list(iter(take, None))


def named(queue: str) -> list[int]:
    """Takes all messages of a queue: what each of them names."""
    return [found.payload[0][0] for found in taken(queue)]


def overdue(topic: str, count: int, *, seconds: int = 600) -> list[int]:
    """Promises of which nobody has heard, the oldest first."""
    with transaction.atomic():
        rows = outbox.publish_many(topic, [(f"r-{n}", {}) for n in range(count)])
        transaction.get_connection().run_on_commit.clear()
    at = clock.now() - timedelta(seconds=seconds)
    for number, row in enumerate(rows):
        row.due_at = at + timedelta(milliseconds=number)
    OutboxMessage.objects.bulk_update(rows, ["due_at"])
    return [row.pk for row in rows]


def until_due(pk: int) -> float:
    found = OutboxMessage.objects.annotate(now=Now()).get(pk=pk)
    return (found.due_at - found.now).total_seconds()


def test_the_first_nudge_has_a_head_start() -> None:
    with transaction.atomic():
        (row,) = outbox.publish(EFFECT, "r-1")
    assert named("effects") == [row.pk]
    assert tasks.sweep_outbox() == 0
    assert 3 < until_due(row.pk) < outbox.HEAD_START


def test_what_is_due_is_sent_oldest_first_and_then_rests() -> None:
    young, old = overdue(EFFECT, 2), overdue(EFFECT, 1, seconds=900)
    assert tasks.sweep_outbox() == 3
    assert named("effects") == old + young
    assert sweeps.send_due_messages() == 0
    assert 4 < until_due(old[0]) < 6


def test_who_waited_for_long_waits_longer_up_to_a_minute() -> None:
    (pk,) = overdue(EFFECT, 1)
    OutboxMessage.objects.update(created_at=clock.now() - timedelta(hours=1))
    assert sweeps.send_due_messages() == 1
    assert 59 < until_due(pk) < 61


def test_what_is_held_or_done_is_left_alone() -> None:
    held, done = overdue(EFFECT, 2)
    later = clock.now() + timedelta(minutes=1)
    OutboxMessage.objects.filter(pk=held).update(held_until=later)
    OutboxMessage.objects.filter(pk=done).update(done_at=Now())
    assert sweeps.send_due_messages() == 0
    assert named("effects") == []


def test_a_full_queue_hides_no_other() -> None:
    """Of old mails there are more than their queue has room for; the effect behind
    them is sent, and those that were left out come next."""
    mails = overdue(MAIL, dispatch.MAX_QUEUED + 30, seconds=900)
    effects = overdue(EFFECT, 1)
    assert sweeps.send_due_messages() == dispatch.MAX_QUEUED + 1
    assert named("effects") == effects
    assert named("notifications") == mails[: dispatch.MAX_QUEUED]
    assert sweeps.send_due_messages() == 30
    assert named("notifications") == mails[dispatch.MAX_QUEUED :]


def test_no_more_is_sent_than_there_is_room_for() -> None:
    dispatch.fill_queue(
        "hitl.tasks.notify_people", map(str, range(dispatch.MAX_QUEUED - 3))
    )
    overdue(MAIL, 10)
    assert [sweeps.send_due_messages(), sweeps.send_due_messages()] == [3, 0]
    assert dispatch.count_free_slots("hitl.tasks.notify_people") == 0


def test_a_message_costs_no_query_of_its_own() -> None:
    overdue(MAIL, 3 * sweeps.SEND_CHUNK)
    with CaptureQueriesContext(connection) as caught:
        assert sweeps.send_due_messages() == 3 * sweeps.SEND_CHUNK
    assert len(caught) <= 12  # of five queues, and two for each piece


def test_a_sweep_that_is_cut_off_remembers_its_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It sends again no more than one piece."""
    mails = overdue(MAIL, 3 * sweeps.SEND_CHUNK)
    told: list[str] = []

    def cut_off(name: str, subject: str = "") -> None:
        told.append(name)
        if told.count("before_nudge") > 2.5 * sweeps.SEND_CHUNK:
            raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "point", cut_off)
        with pytest.raises(SystemExit):
            sweeps.send_due_messages()
    first = named("notifications")
    sweeps.send_due_messages()
    again = named("notifications")
    assert first + again[sweeps.SEND_CHUNK // 2 :] == mails
    assert first[2 * sweeps.SEND_CHUNK :] == again[: sweeps.SEND_CHUNK // 2]


@pytest.mark.usefixtures("away")
def test_a_broker_that_is_away_is_asked_once_and_nothing_moves() -> None:
    pks = overdue(MAIL, 2) + overdue(EFFECT, 2)
    assert sweeps.send_due_messages() == 0
    assert all(until_due(pk) < 0 for pk in pks)


def test_a_broker_that_goes_away_ends_the_sweep(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    effects, mails = overdue(EFFECT, 3), overdue(MAIL, 1)
    answers = iter([None])

    def one_then_none(*_: object) -> None:
        if next(answers, ConnectionError) is ConnectionError:
            raise ConnectionError

    monkeypatch.setattr(dispatch, "send_message", one_then_none)
    assert sweeps.send_due_messages() == 1
    assert until_due(effects[0]) > 0
    assert all(until_due(pk) < 0 for pk in [*effects[1:], *mails])
