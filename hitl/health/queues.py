"""What the broker knows of workers and queues: which process serves what, how many
messages wait, and for how long the oldest has waited."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import redis
from django.conf import settings

from journal import dispatch

from .. import connections, worker_register
from ..doctor import OK, WARN, WRONG, Finding
from ..worker_register import BEAT_QUEUE, WorkerLine
from .checks import get_start_command
from .wording import clean_name, format_span

MOST_HOURS = 24 * 7  # no age of a message is longer, whatever it says of itself


def check_worker_lines() -> Iterator[Finding]:
    """Each worker and beat that reported lately. Raises redis.RedisError."""
    lines = worker_register.list_workers()
    for line in lines:
        yield _describe_worker(line)
    if not lines:
        yield Finding("Workers", WRONG, "none reports", get_start_command())
        return
    served = {name for line in lines if not line.is_missed for name in line.queues}
    for name in (*(queue.name for queue in connections.QUEUES), BEAT_QUEUE):
        if name not in served:
            subject = "Beat" if name == BEAT_QUEUE else f"Workers of {name}"
            yield Finding(subject, WRONG, "none reports", get_start_command())


def _describe_worker(line: WorkerLine) -> Finding:
    beats = list(line.queues) == [BEAT_QUEUE]
    subject = (
        f"{'Beat' if beats else 'Worker'} {clean_name(line.host)}, process {line.pid}"
    )
    if line.is_missed:
        text = f"reported {format_span(line.silent_for)} ago, and not since"
        return Finding(subject, WARN, text, get_start_command())
    text = f"runs for {format_span(line.up_for)}"
    if not beats:
        served = clean_name(", ".join(line.queues))
        text = f"{text}, {line.processes} processes, serves {served}"
    return Finding(subject, OK, text)


def check_queues() -> Iterator[Finding]:
    """Each queue with its backlog and the age of its oldest message. Raises
    redis.RedisError."""
    names = [queue.name for queue in connections.QUEUES]
    client = redis.Redis.from_url(
        settings.COUNTERSEAL.redis_url,
        socket_connect_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
        socket_timeout=connections.BROKER_CONNECT_TIMEOUT_S,
    )
    try:
        pipeline: Any = client.pipeline(transaction=False)
        pipeline.time()
        for name in names:  # the oldest message is the last one
            pipeline.llen(name)
            pipeline.lindex(name, -1)
        (now, _), *answers = pipeline.execute()
    finally:
        client.close()
    for at, name in enumerate(names):
        waiting, oldest = answers[2 * at : 2 * at + 2]
        yield _describe_queue(name, waiting, _find_age(oldest, now))


def _describe_queue(name: str, waiting: int, age: float | None) -> Finding:
    subject = f"Queue {name}"
    if not waiting:
        return Finding(subject, OK, "no message waits")
    text = f"{waiting} {'message waits' if waiting == 1 else 'messages wait'}"
    if age is not None:
        text = f"{text}, the oldest for {format_span(age)}"
    limit = float(settings.COUNTERSEAL.standstill_seconds)
    if waiting < dispatch.MAX_QUEUED and (age or 0.0) <= limit:
        return Finding(subject, OK, text)
    repair = f"counterseal worker --queues {name}"
    return Finding(subject, WARN, text, repair)


def _find_age(message: bytes | None, now: int) -> float | None:
    """Seconds since the message was sent; None where it does not say."""
    try:
        sent = float(json.loads(message or b"{}")["headers"][dispatch.SENT_AT])
    except (ValueError, TypeError, KeyError):
        return None
    return min(max(0.0, now - sent), 3600.0 * MOST_HOURS)
