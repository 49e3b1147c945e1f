"""What is sent while a queue has room, on the real broker."""

from __future__ import annotations

import pytest
import redis
from celery.beat import ScheduleEntry
from kombu.exceptions import OperationalError

from hitl.beat import Sweeper
from hitl.celery import app
from journal import dispatch

pytestmark = pytest.mark.usefixtures("broker")

LETTER, SWEEP = "agents.tasks.post", "journal.tasks.sequence"


def test_a_queue_holds_no_more_than_it_has_room_for(broker: redis.Redis) -> None:
    assert dispatch.room(LETTER) == dispatch.ROOM
    ids = [f"d-{number}" for number in range(dispatch.ROOM + 5)]
    assert dispatch.hand_over(LETTER, ids[:-10]) == dispatch.ROOM - 5
    assert dispatch.room(LETTER) == 5
    assert dispatch.hand_over(LETTER, ids[-10:]) == 5
    assert dispatch.hand_over(LETTER, ids) == 0
    assert broker.llen("hooks") == dispatch.ROOM
    assert dispatch.room(SWEEP) == dispatch.ROOM  # another queue


def test_what_is_yet_to_be_told_leaves_room_for_letters() -> None:
    ids = map(str, range(dispatch.ROOM))
    assert dispatch.hand_over("agents.tasks.tell", ids) == dispatch.ROOM
    assert dispatch.room(LETTER) == dispatch.ROOM


def test_nothing_to_say_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "room", None)
    assert dispatch.hand_over(LETTER, []) == 0


def test_who_tells_the_time_waits_until_there_is_room(broker: redis.Redis) -> None:
    beat = Sweeper(app, lazy=True)
    entry = ScheduleEntry(name=SWEEP, task=SWEEP, schedule=1, app=app)
    for _ in range(dispatch.ROOM + 5):
        beat.apply_entry(entry)
    assert broker.llen("celery") == dispatch.ROOM
    broker.lpop("celery")
    beat.apply_entry(entry)
    assert broker.llen("celery") == dispatch.ROOM


def test_a_broker_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    with app.connection_for_write("redis://127.0.0.1:1/0") as away:
        producer = app.amqp.Producer(away, auto_declare=False)
        monkeypatch.setattr(app, "producer_or_acquire", lambda: producer)
        with pytest.raises(OperationalError):
            dispatch.room(SWEEP)
