"""A worker's own end of a broker outage; the outage itself is in
tests/journeys/test_fail_open.py."""

from __future__ import annotations

import logging
import os
import pickle
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from celery.concurrency.asynpool import ResultHandler
from kombu.asynchronous import Hub
from kombu.connection import Connection

from hitl.celery import app
from hitl.celery_workarounds import (
    CONSUMER_STEPS,
    LostAckStep,
    PartialResultStep,
    TrackedMessage,
)

LOGGER = logging.getLogger(__name__)
ERRORS = (OSError,)


def test_every_worker_takes_these_steps() -> None:
    assert set(CONSUMER_STEPS) <= app.steps["consumer"]


def worker(connection: Connection) -> Any:
    """As much of Celery's consumer as the steps use."""
    channel = connection.channel()
    return SimpleNamespace(
        hub=Hub(), connection=connection, task_consumer=SimpleNamespace(channel=channel)
    )


def broken(*args: Any, **kwargs: Any) -> None:
    raise ConnectionResetError


@pytest.mark.parametrize("verb", ["ack_log_error", "reject_log_error"])
def test_a_message_that_cannot_be_given_back_ends_the_connection(verb: str) -> None:
    with Connection("memory://") as connection:
        parent = worker(connection)
        LostAckStep(parent).start(parent)
        channel = parent.task_consumer.channel
        message = channel.Message({"properties": {"delivery_tag": "1"}}, channel)
        assert isinstance(message, TrackedMessage)
        channel.basic_ack = channel.basic_reject = broken
        getattr(message, verb)(LOGGER, ERRORS)
        with pytest.raises(ConnectionError, match="given back"):
            parent.hub.fire_timers(propagate=ERRORS)


def test_what_an_older_connection_lost_does_not_end_the_next() -> None:
    with Connection("memory://") as connection:
        parent = worker(connection)
        LostAckStep(parent).start(parent)
        parent.task_consumer.channel.lost()
        parent.connection = None
        parent.hub.fire_timers(propagate=ERRORS)


def pool(hub: Hub, pipe: int) -> Any:
    """Celery's own reader of what the pool's processes say, at one pipe."""
    results = ResultHandler.__new__(ResultHandler)
    process = SimpleNamespace(outq=SimpleNamespace(_reader=None))
    results.fileno_to_outq = {pipe: process}
    results._hub, results.handle_event = hub, print
    return SimpleNamespace(_pool=SimpleNamespace(_result_handler=results))


def test_a_result_that_is_half_read_is_read_to_its_end() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    seen: list[str] = []
    hub = Hub()
    parent = SimpleNamespace(hub=hub, pool=pool(hub, ours))
    PartialResultStep(parent).start(parent)
    body = pickle.dumps("a long result")
    os.write(theirs, struct.pack(">i", len(body)) + body[:5])
    results = parent.pool._pool._result_handler
    reading = results._recv_message(hub.add_reader, ours, seen.append)
    next(reading)
    hub.add_reader(ours, reading)
    os.write(theirs, body[5:])
    hub.reset()
    assert seen == ["a long result"]
    assert hub.readers == {}
    os.close(ours)
    os.close(theirs)
