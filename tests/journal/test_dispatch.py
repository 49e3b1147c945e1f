"""What is sent while a queue has room, on the real broker."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from celery.beat import ScheduleEntry
from kombu.exceptions import OperationalError

from hitl.celery import Sweeper, app
from journal import dispatch

pytestmark = pytest.mark.usefixtures("broker")

LETTER, SWEEP = "agents.tasks.post", "journal.tasks.sequence"


def test_a_queue_holds_no_more_than_it_has_room_for(broker: redis.Redis) -> None:
    assert dispatch.count_free_slots(LETTER) == dispatch.MAX_QUEUED
    ids = [f"d-{number}" for number in range(dispatch.MAX_QUEUED + 5)]
    assert dispatch.fill_queue(LETTER, ids[:-10]) == dispatch.MAX_QUEUED - 5
    assert dispatch.count_free_slots(LETTER) == 5
    assert dispatch.fill_queue(LETTER, ids[-10:]) == 5
    assert dispatch.fill_queue(LETTER, ids) == 0
    assert broker.llen("hooks") == dispatch.MAX_QUEUED
    assert dispatch.count_free_slots(SWEEP) == dispatch.MAX_QUEUED  # another queue


def test_what_is_yet_to_be_told_leaves_room_for_letters() -> None:
    ids = map(str, range(dispatch.MAX_QUEUED))
    assert dispatch.fill_queue("agents.tasks.tell", ids) == dispatch.MAX_QUEUED
    assert dispatch.count_free_slots(LETTER) == dispatch.MAX_QUEUED


def test_nothing_to_say_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "count_free_slots", None)
    assert dispatch.fill_queue(LETTER, []) == 0


def test_who_tells_the_time_waits_until_there_is_room(broker: redis.Redis) -> None:
    beat = Sweeper(app, lazy=True)
    entry = ScheduleEntry(name=SWEEP, task=SWEEP, schedule=1, app=app)
    for _ in range(dispatch.MAX_QUEUED + 5):
        beat.apply_entry(entry)
    assert broker.llen("celery") == dispatch.MAX_QUEUED
    broker.lpop("celery")
    beat.apply_entry(entry)
    assert broker.llen("celery") == dispatch.MAX_QUEUED


def test_a_broker_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with app.connection_for_write("redis://127.0.0.1:1/0") as away:
        producer = app.amqp.Producer(away, auto_declare=False)
        monkeypatch.setattr(app, "producer_or_acquire", lambda: producer)
        with pytest.raises(OperationalError):
            dispatch.count_free_slots(SWEEP)


@pytest.mark.parametrize("pk", [7, "d-7"])
def test_a_message_is_the_one_that_celery_would_send(
    broker: redis.Redis, pk: int | str
) -> None:
    dispatch.send_message(LETTER, pk)
    app.send_task(LETTER, args=[pk], retry=False, ignore_result=True)
    theirs, ours = taken_raw(broker, "hooks")
    assert ours.keys() == theirs.keys()
    for name in ("headers", "properties"):
        assert ours[name].keys() == theirs[name].keys()
        differ = {k for k, v in ours[name].items() if v != theirs[name][k]}
        assert differ <= {"id", "root_id", "correlation_id", "delivery_tag", "sent_at"}
    assert ours["body"] == theirs["body"]


def test_no_two_messages_have_one_name(broker: redis.Redis) -> None:
    for _ in range(3):
        dispatch.send_message(LETTER, 7)
    found = taken_raw(broker, "hooks")
    assert len({one["headers"]["id"] for one in found}) == 3
    assert len({one["properties"]["delivery_tag"] for one in found}) == 3


def taken_raw(broker: redis.Redis, queue: str) -> list[dict[str, Any]]:
    found: list[bytes] = broker.lrange(queue, 0, -1)  # type: ignore[assignment]
    return [json.loads(one) for one in found]
