"""Workers, beats and queues, as the real broker knows them."""

from __future__ import annotations

import json
import os
import signal

import pytest
import redis
from pytest_django import Settings

from hitl import tasks, worker_register
from hitl.doctor import Finding
from hitl.health import queues
from hitl.worker_register import REGISTER, WorkerRegister
from journal import dispatch
from tests.stack import Stack, wait_until

HOOK = "agents.tasks.post"


def read_queue(name: str) -> Finding:
    (found,) = (f for f in queues.check_queues() if f.subject == f"Queue {name}")
    return found


def read_pids() -> list[int]:
    return [line.pid for line in worker_register.list_workers()]


def test_a_queue_says_how_long_its_oldest_message_waits(broker: redis.Redis) -> None:
    assert read_queue("hooks").text == "no message waits"
    dispatch.send_message(HOOK, "d-1")
    assert read_queue("hooks").level == "ok"
    message = json.loads(broker.lindex("hooks", -1) or b"")
    now, _ = broker.time()
    message["headers"][dispatch.SENT_AT] = f"{now - 300:.1f}"
    broker.rpush("hooks", json.dumps(message))
    found = read_queue("hooks")
    assert (found.level, found.text) == (
        "warn",
        "2 messages wait, the oldest for 5 min",
    )
    assert found.repair == "counterseal worker --queues hooks"
    broker.rpush("hooks", b"not a message")  # others may write there
    assert read_queue("hooks").text == "3 messages wait"


def test_a_worker_enters_itself_and_leaves(broker: redis.Redis) -> None:
    register = WorkerRegister()
    (nobody,) = queues.check_worker_lines()
    assert (nobody.level, nobody.text) == ("wrong", "none reports")
    register.enter(["effects", "celery"], 4)
    wait_until(lambda: read_pids() == [os.getpid()], 10, lambda: str(read_pids()))
    lines = {f.subject: f for f in queues.check_worker_lines()}
    (own,) = (f for name, f in lines.items() if f"process {os.getpid()}" in name)
    assert own.text.endswith("4 processes, serves effects, celery")
    assert lines["Workers of hooks"].repair
    assert lines["Beat"].repair
    assert "Workers of effects" not in lines
    register.leave()
    wait_until(lambda: not read_pids(), 10, lambda: str(read_pids()))


@pytest.mark.servers
def test_a_real_worker_is_listed_until_it_is_told_to_stop(
    live: Stack, broker: redis.Redis
) -> None:
    live.start_worker()
    (child,) = live.workers
    wait_until(lambda: read_pids() == [child.pid], 20, lambda: str(read_pids()))
    (line,) = worker_register.list_workers()
    assert line.processes == 2
    assert {"effects", "celery", worker_register.BEAT_QUEUE} < {*line.queues}
    assert {finding.level for finding in queues.check_worker_lines()} == {"ok"}
    os.kill(line.pid, signal.SIGTERM)
    wait_until(lambda: not read_pids(), 20, lambda: str(read_pids()))


@pytest.mark.parametrize("silent", [60, 3600])
@pytest.mark.django_db
def test_a_worker_that_was_killed_is_missed_for_a_while(
    broker: redis.Redis, silent: int
) -> None:
    now, _ = broker.time()
    report = {"queues": ["effects"], "processes": 4, "began": now, "at": now - silent}
    broker.hset(REGISTER, "host<b>:7", json.dumps(report))
    broker.hset(REGISTER, "forged", "{}")
    missed = [f for f in queues.check_worker_lines() if "host?b?" in f.subject]
    assert [f.text for f in missed] == (
        ["reported 60 s ago, and not since"] if silent == 60 else []
    )
    assert broker.hexists(REGISTER, "host<b>:7")  # reading changes nothing
    tasks.watch()
    assert bool(broker.hexists(REGISTER, "host<b>:7")) == (silent == 60)


def test_a_broker_that_is_away_is_the_errors_of_the_checks(settings: Settings) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"redis_url": "redis://127.0.0.1:1/0"}
    )
    for check in (queues.check_queues, queues.check_worker_lines):
        with pytest.raises(redis.ConnectionError):
            list(check())
