"""The row is the promise; the broker may lose, repeat, delay or forge."""

from __future__ import annotations

import threading
from datetime import timedelta
from functools import partial

import celery
import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.db.transaction import TransactionManagementError

from journal import clock, dispatch, outbox
from journal.models import OutboxMessage
from tests.races.together import elsewhere
from tests.stack import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

MAIL, HOOK = "tests.mail", "tests.hook"


class Broker:
    """Stands in for the network only: it keeps what was sent, or is down."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, int]] = []
        self.asked = 0
        self.down = False

    def send_message(self, task, pk):
        self.asked += 1
        if self.down:
            raise ConnectionError("no broker")
        assert not connection.in_atomic_block
        self.sent.append((task, pk))


@pytest.fixture(autouse=True)
def routes(settings):
    settings.OUTBOX_ROUTES = {"case.settled": (MAIL, HOOK), "case.opened": (MAIL,)}


@pytest.fixture(autouse=True)
def broker(monkeypatch):
    broker = Broker()
    monkeypatch.setattr(dispatch, "send_message", broker.send_message)
    return broker


def publish(topic="case.opened", subject="r-1", **facts):
    with transaction.atomic():
        return outbox.publish(topic, subject, **facts)[0]


def publish_so_many(count, topic):
    with transaction.atomic():
        return outbox.publish_many(
            topic, [(str(number), {}) for number in range(count)]
        )


def make_due(message, *, held=True):
    """Move the deadlines, never the clock."""
    past = clock.now() - timedelta(seconds=1)
    values = {"due_at": past} | ({} if held else {"held_until": past})
    OutboxMessage.objects.filter(pk=message.pk).update(**values)


def seconds_until(message, field):
    found = OutboxMessage.objects.annotate(now=Now()).get(pk=message.pk)
    return (getattr(found, field) - found.now).total_seconds()


def test_one_row_a_route_and_a_nudge_after_the_commit(broker):
    with transaction.atomic():
        rows = outbox.publish("case.settled", "r-1", version=2, why="late")
        assert broker.sent == []
    assert broker.sent == [(MAIL, rows[0].pk), (HOOK, rows[1].pk)]
    stored = OutboxMessage.objects.values_list("task", "subject", "facts")
    facts = {"version": 2, "why": "late"}
    assert list(stored.order_by("pk")) == [(MAIL, "r-1", facts), (HOOK, "r-1", facts)]


def test_an_unknown_topic_is_loud():
    with transaction.atomic(), pytest.raises(KeyError):
        outbox.publish("case.settle", "r-1")


def test_publishing_needs_the_transaction_of_its_cause():
    with pytest.raises(TransactionManagementError):
        outbox.publish("case.opened", "r-1")


def test_a_rolled_back_change_promises_nothing(broker):
    with transaction.atomic():
        outbox.publish("case.opened", "r-1")
        transaction.set_rollback(True)
    assert broker.sent == []
    assert not OutboxMessage.objects.exists()


def test_many_are_published_with_one_insert(django_assert_num_queries):
    with transaction.atomic(), django_assert_num_queries(1):
        rows = outbox.publish_many("case.opened", [(f"r-{n}", {}) for n in range(200)])
    assert len(rows) == 200


def promise_once(at, subject="p-1"):
    with transaction.atomic():
        outbox.publish_once("case.opened", {subject: at})


def test_once_for_a_moment_is_once():
    at = clock.now() + timedelta(hours=1)
    for _ in range(2):
        promise_once(at)
    assert OutboxMessage.objects.count() == 1
    promise_once(at, "p-2")
    promise_once(at + timedelta(seconds=1))
    assert OutboxMessage.objects.count() == 3


def test_what_was_taken_up_is_promised_again():
    at = clock.now() + timedelta(hours=1)
    promise_once(at)
    past = clock.now() - timedelta(seconds=1)
    OutboxMessage.objects.update(held_until=past)  # its time has come
    outbox._claim_message(OutboxMessage.objects.get().pk)
    promise_once(at)
    assert OutboxMessage.objects.count() == 2


def test_a_promise_is_not_taken_up_while_something_joins_it():
    """Or whoever takes it up would not see what was written beside it."""
    at = clock.now() + timedelta(milliseconds=500)
    promise_once(at)
    message = OutboxMessage.objects.get()
    with transaction.atomic():
        outbox.publish_once("case.opened", {"p-1": at})
        with pytest.raises(OperationalError, match="lock timeout"):
            elsewhere(partial(hurried, message.pk, at))
    assert OutboxMessage.objects.count() == 1


def hurried(message_id, at):
    """Takes it up when its time has come, and does not wait for whoever is at it."""
    wait_until(lambda: clock.now() > at, 5)
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '100ms'")
    outbox._claim_message(message_id)


def test_a_dead_broker_fails_nobody_and_is_asked_once(broker):
    broker.down = True
    with transaction.atomic():
        rows = outbox.publish_many("case.opened", [("a", {}), ("b", {})])
    assert broker.asked == 1
    assert outbox.nudge_consumers(rows) == 0


def test_of_many_only_as_many_are_nudged_as_their_queues_have_room_for(
    broker, monkeypatch
):
    """The others are there for the sweep; whoever committed does not wait for them."""
    monkeypatch.setattr(dispatch, "count_free_slots", {MAIL: 3, HOOK: 0}.__getitem__)
    rows = publish_so_many(outbox.MAX_UNCHECKED_NUDGES, "case.settled")
    assert broker.sent == [(MAIL, one.pk) for one in rows if one.task == MAIL][:3]
    assert OutboxMessage.objects.filter(done_at=None).count() == len(rows)


def test_of_a_few_all_are_nudged_without_a_look_at_the_queues(broker, monkeypatch):
    monkeypatch.setattr(dispatch, "count_free_slots", None)
    publish_so_many(outbox.MAX_UNCHECKED_NUDGES, "case.opened")
    assert len(broker.sent) == outbox.MAX_UNCHECKED_NUDGES


def test_many_and_a_dead_broker_fail_nobody(broker, monkeypatch):
    def room(task):
        raise ConnectionError("no broker")

    monkeypatch.setattr(dispatch, "count_free_slots", room)
    publish_so_many(outbox.MAX_UNCHECKED_NUDGES + 1, "case.opened")
    assert broker.asked == 0
    assert OutboxMessage.objects.count() == outbox.MAX_UNCHECKED_NUDGES + 1


def test_a_consumed_message_is_done_once():
    message = publish(subject="r-9", version=3)
    with outbox.consume(message.pk) as mine:
        assert mine is not None
        assert (mine.subject, mine.facts) == ("r-9", {"version": 3})
        assert not connection.in_atomic_block
    with outbox.consume(message.pk) as again:
        assert again is None
    message.refresh_from_db()
    assert message.done_at is not None
    assert message.attempts == 1


def test_an_id_that_is_not_there_is_nothing():
    with outbox.consume(123456789) as message:
        assert message is None


def test_only_one_consumer_at_a_time():
    message = publish()
    with outbox.consume(message.pk), outbox.consume(message.pk) as second:
        assert second is None
    message.refresh_from_db()
    assert message.done_at is not None


def test_a_failure_rests_longer_each_time():
    message = publish()
    rests = []
    for _ in range(9):
        with pytest.raises(ZeroDivisionError), outbox.consume(message.pk):
            raise ZeroDivisionError
        rests.append(round(seconds_until(message, "held_until")))
        with outbox.consume(message.pk) as too_early:
            assert too_early is None
        make_due(message, held=False)
    assert rests == [5, 10, 20, 40, 80, 160, 320, 600, 600]


def test_a_consumer_that_died_frees_the_message_when_its_hold_ends(settings):
    message = publish()
    outbox._claim_message(message.pk)  # and never comes back
    hold = seconds_until(message, "held_until")
    assert hold <= settings.COUNTERSEAL.lease_seconds < hold + 2
    make_due(message, held=False)
    with outbox.consume(message.pk) as mine:
        assert mine is not None
        assert mine.attempts == 2


def test_who_lost_the_hold_writes_nothing():
    message = publish()
    with outbox.consume(message.pk):
        make_due(message, held=False)
        taken = outbox._claim_message(message.pk)
    assert taken is not None
    message.refresh_from_db()
    assert message.done_at is None
    assert message.attempts == taken.attempts == 2


def test_a_task_cannot_use_up_another_tasks_message():
    @celery.shared_task(name=HOOK)
    def forged(message_id):
        with outbox.consume(message_id) as message:
            return message is not None

    message = publish()  # for MAIL
    assert forged(message.pk) is False
    message.refresh_from_db()
    assert (message.done_at, message.attempts) == (None, 0)


def test_many_consumers_at_once_work_one_time():
    message = publish()
    worked, start = [], threading.Barrier(8)

    def deliver():
        start.wait()
        with outbox.consume(message.pk) as mine:
            if mine:
                worked.append(mine.attempts)
        connection.close()

    threads = [threading.Thread(target=deliver) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert worked == [1]
