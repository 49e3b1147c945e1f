"""Whoever can write to the broker neither ends a worker nor commands one (I25)."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from celery import current_app
from celery.worker.consumer import Gossip, Mingle
from kombu.transport.redis import QoS

from hitl import connections
from hitl.broker_messages import CONSUMER_STEPS, IGNORED_HEADERS, _make_handler
from hitl.celery import app
from journal import dispatch
from reviews.alarms import standing
from reviews.choices import AlarmKind, ExecutionStatus
from reviews.models import Alarm, Execution
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.stack import Stack, wait_until

servers = [
    pytest.mark.servers,
    pytest.mark.django_db(transaction=True),
]
TASK = "hitl.tasks.pulse_effects"
WORDS = re.compile(rb"pidbox|celeryev")  # that workers would exchange


def envelope(**changes: Any) -> dict[str, Any]:
    """A message as kombu writes one, with something wrong in it."""
    body = base64.b64encode(b"[[], {}, {}]").decode()
    whole = {
        "body": body,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"lang": "py", "task": TASK, "id": "x-1", "root_id": "x-1"},
        "properties": {
            "correlation_id": "x-1",
            "delivery_info": {"exchange": "", "routing_key": connections.EFFECTS},
            "delivery_tag": "tag-1",
            "body_encoding": "base64",
        },
    }
    return {**whole, **changes}


def headers(**changes: Any) -> str:
    return json.dumps(envelope(headers={"task": TASK, "id": "x-1", **changes}))


def properties(**changes: Any) -> str:
    whole = envelope()["properties"]
    return json.dumps(envelope(properties={**whole, **changes}))


def without(name: str) -> str:
    whole = envelope()
    del whole[name]
    return json.dumps(whole)


POISON: dict[str, str | bytes] = {
    "not json": "not json",
    "nothing": "",
    "not text": b"\xff\xfe\x00",
    "half": json.dumps(envelope())[:80],
    "a number": "42",
    "null": "null",
    "a list": "[1, 2]",
    "an empty object": "{}",
    "deep": "[" * 20_000,
    "no headers": without("headers"),
    "no properties": without("properties"),
    "no body": without("body"),
    "headers are a list": json.dumps(envelope(headers=[1])),
    "a task that is a list": headers(task=["a"]),
    "a task that is an object": headers(task={"a": 1}),
    "no id": json.dumps(envelope(headers={"task": TASK})),
    "an id that is an object": headers(id={"a": 1}),
    "an unknown task": headers(task="nobody.knows"),
    "a date that is none": headers(eta="yesterday"),
    "limits that are none": headers(timelimit="soon"),
    "properties are a list": json.dumps(envelope(properties=[1])),
    "no delivery tag": properties(delivery_tag=None),
    "a delivery tag that is an object": properties(delivery_tag={"a": 1}),
    "no delivery info": properties(delivery_info=None),
    "a body that is no base64": json.dumps(envelope(body="%%%")),
    "an unknown encoding": properties(body_encoding="rot13"),
    "pickle": json.dumps(
        envelope(**{"content-type": "application/x-python-serialize"})
    ),
    "a charset that is none": json.dumps(envelope(**{"content-encoding": "klingon"})),
    "arguments that are none": json.dumps(
        envelope(body=base64.b64encode(b'"text"').decode())
    ),
}


@pytest.fixture
def performs(gate: Gate) -> Callable[[str], float]:
    """Seconds until a new approval is executed."""

    def run(customer: str) -> float:
        request = propose(gate.agent, "pay", customer=customer).request
        decide(request, gate.rita)
        start = time.monotonic()
        done = Execution.objects.filter(
            proposal=request.proposal_id, status=ExecutionStatus.SUCCEEDED
        )
        wait_until(done.exists, 60)
        return time.monotonic() - start

    return run


def command() -> None:
    """What Celery's remote control would make a worker do; nobody answers."""
    # What waits for answers leaves a connection that is good for nothing else.
    with current_app.connection_for_write() as connection:
        for verb, given in {
            "cancel_consumer": {"queue": "effects"},
            "rate_limit": {"task_name": "hitl.tasks.execute", "rate_limit": "1/h"},
            "time_limit": {"task_name": "hitl.tasks.execute", "hard": 9999},
            "shutdown": {},
        }.items():
            current_app.control.broadcast(verb, arguments=given, connection=connection)
        assert current_app.control.ping(timeout=1, connection=connection) == []


class TestWorker:
    pytestmark = servers

    def test_no_message_ends_or_commands_the_worker(
        self,
        live: Stack,
        broker: redis.Redis,
        performs: Callable[[str], float],
    ) -> None:
        worker = live.start_worker(processes=1)
        for name, message in POISON.items():
            for queue in ("effects", "celery"):
                broker.lpush(queue, message)
            wait_until(
                lambda: not broker.llen("effects") and not broker.llen("celery"),
                60,
                lambda: f"{name}: {live.log('worker')}",  # noqa: B023 called at once
            )
            assert worker.exit_code() is None, (name, live.log("worker")[-2000:])
        assert performs("after") < 10
        assert worker.exit_code() is None
        assert live.log("worker").count(" ready.") >= 1
        assert int(broker.get(dispatch.DROPPED_COUNTER) or 0) > 0
        command()
        assert performs("unbidden") < 30
        assert worker.exit_code() is None
        assert not [key for key in broker.scan_iter() if WORDS.search(key)]

    def test_what_is_dropped_is_told(self, live: Stack, broker: redis.Redis) -> None:
        live.start_worker(processes=1)
        broker.lpush("effects", "not json", "nor this")
        found = Alarm.objects.filter(kind=AlarmKind.UNREADABLE, data={"messages": 2})
        wait_until(found.exists, 90, lambda: live.log("worker"))
        assert "broker.message_dropped" in live.log("worker")
        assert "nor this" not in live.log("worker")

    def test_what_was_held_and_cannot_be_read_does_not_keep_the_rest(
        self, live: Stack, broker: redis.Redis
    ) -> None:
        """Older entries of the broker's list of what workers hold."""
        whole = json.dumps([envelope(), "", "effects"])
        broker.hset("unacked", mapping={"bad": "not json", "good": whole})
        broker.zadd("unacked_index", {"bad": 2, "good": 1})
        live.start_worker(processes=1)
        wait_until(lambda: not broker.zcard("unacked_index"), 60)
        wait_until(lambda: not broker.hlen("unacked"), 60)


def test_every_worker_takes_these_steps_and_no_others_words() -> None:
    assert set(CONSUMER_STEPS) <= app.steps["consumer"]
    assert app.conf.worker_enable_remote_control is False
    for step in (Gossip, Mingle):
        made: Any = SimpleNamespace(
            app=app, hub=None, timer=None, hostname="h", pid=1, _mutex=None
        )
        assert not step(made).enabled


def test_kombu_still_fails_at_what_it_cannot_read(broker: redis.Redis) -> None:
    broker.lpush("effects", "not json")
    broker.hset("unacked", "bad", "not json")
    with app.connection_for_read() as opened:
        channel = opened.default_channel
        channel.active_fanout_queues.clear()
        with pytest.raises(json.JSONDecodeError):
            channel._get("effects")
        with pytest.raises(json.JSONDecodeError):
            QoS(channel).restore_by_tag("bad")


def test_a_message_sets_no_limits_of_its_own() -> None:
    given = dict.fromkeys(IGNORED_HEADERS, "9999") | {"task": TASK}
    parent: Any = SimpleNamespace(connection_errors=(OSError,))
    handle = _make_handler(parent, lambda parent: lambda message: message.headers)
    found = handle(SimpleNamespace(headers=dict(given)))
    assert found == dict.fromkeys(IGNORED_HEADERS) | {"task": TASK}


@pytest.mark.django_db
def test_dropped_messages_are_added_up_in_one_alarm() -> None:
    assert standing.raise_for_dropped_messages(count=0) is None
    standing.raise_for_dropped_messages(count=3)
    standing.raise_for_dropped_messages(count=4)
    alarm = Alarm.objects.get(kind=AlarmKind.UNREADABLE)
    assert (alarm.times, alarm.data) == (2, {"messages": 7})


def test_the_broker_counts_what_was_dropped(broker: redis.Redis) -> None:
    assert dispatch.count_dropped() == 0
    broker.incrby(dispatch.DROPPED_COUNTER, 5)
    dispatch.subtract_dropped(3)
    assert dispatch.count_dropped() == 2
