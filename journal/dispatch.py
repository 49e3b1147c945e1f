"""Sends Celery messages: the only module that talks to the broker's task queues.

A message carries the id of a row for a task to work on, and nothing else. A sweep sends
messages only while the queue has room. The next sweep sends whatever is still pending,
so skipping some loses nothing, and a queue whose workers were down for an hour does not
fill up with repetitions. Messages never expire: the sender's clock and the worker's may
differ by more than any sensible expiry time.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import uuid4

import redis
from celery import current_app
from celery.signals import before_task_publish
from django.conf import settings
from kombu.exceptions import ChannelError

# Messages in one queue. A worker process handles this many within seconds.
MAX_QUEUED = 200
# The broker's counter of messages that workers dropped because they were unreadable.
DROPPED_COUNTER = "counterseal.dropped"
# A header: when a message was sent, by its sender's clock. Only the health page reads
# it, for the age of the oldest message.
SENT_AT = "sent_at"


def fill_queue(task: str, ids: Iterable[str]) -> int:
    """Send one message per id until the task's queue is full; return how many were
    sent. Raises what the broker's client raises. Caller holds no transaction."""
    given = list(ids)
    if given:
        given = given[: count_free_slots(task)]
    for pk in given:
        send_message(task, pk)
    return len(given)


def send_message(task: str, pk: str | int) -> None:
    """Send one message, without retries: the row it names stays pending, so a sweep
    sends it again. Raises what the broker's client raises. Caller holds no
    transaction."""
    template = _build_template(task)
    name = str(uuid4())
    body = json.dumps([[pk], *template.rest]).encode()
    message = (
        template.text.replace(_NAME, name)
        .replace(_ARGS, f"[{pk!r}]")
        .replace(_SENT, _format_present())
        .replace(_BODY, base64.b64encode(body).decode())
    )
    _connect_broker(settings.COUNTERSEAL.redis_url).lpush(template.queue, message)


@dataclass(frozen=True, slots=True)
class _MessageTemplate:
    """A message as Celery's transport writes it to `queue`, with placeholders for what
    differs between two messages of a task. `rest` follows the arguments in the body."""

    queue: str
    text: str
    rest: list[Any]


_NAME, _ARGS, _BODY, _SENT = "<name>", "<args>", "<body>", "<sent>"


def stamp_message(headers: dict[str, Any] | None = None, **kwargs: Any) -> None:
    """Add the time to each message that Celery builds."""
    if headers is not None:
        headers[SENT_AT] = _format_present()


before_task_publish.connect(stamp_message)


def _format_present() -> str:
    return f"{time.time():.1f}"


@cache
def _build_template(task: str) -> _MessageTemplate:
    """Build the template from one message that Celery makes. Celery takes ten times as
    long to build a message as to send it."""
    caught: list[tuple[str, dict[str, Any]]] = []
    with current_app.producer_or_acquire() as producer:
        channel = producer.channel
        channel._put = lambda queue, message, **_: caught.append((queue, message))
        try:
            current_app.send_task(
                task, args=[0], task_id=_NAME, producer=producer, ignore_result=True
            )
        finally:
            del channel._put
    ((queue, message),) = caught
    _, *rest = json.loads(base64.b64decode(message["body"]))
    message["headers"] |= {"argsrepr": _ARGS, "root_id": _NAME, "parent_id": None}
    message["headers"][SENT_AT] = _SENT
    message["properties"]["delivery_tag"] = _NAME
    return _MessageTemplate(queue, json.dumps({**message, "body": _BODY}), rest)


@cache
def _connect_broker(url: str) -> redis.Redis:
    """This process's connections to the broker, with the time-outs of Celery's."""
    options = current_app.conf.broker_transport_options
    return redis.Redis.from_url(
        url,
        socket_connect_timeout=options["socket_connect_timeout"],
        socket_timeout=options["socket_timeout"],
    )


def group_by_queue(tasks: Iterable[str]) -> list[list[str]]:
    """Group these task names by queue, the most urgent queue first."""
    by_queue: dict[str, list[str]] = {name: [] for name in current_app.amqp.queues}
    for task in tasks:
        by_queue.setdefault(_find_queue_name(task), []).append(task)
    return [together for together in by_queue.values() if together]


def count_free_slots(task: str) -> int:
    """How many more messages fit into the queue of this task. Raises what the broker's
    client raises."""
    queue = _find_queue_name(task)
    with current_app.producer_or_acquire() as producer:
        try:
            waiting = int(producer.channel.queue_declare(queue, passive=True)[1])
        except ChannelError:  # the queue does not exist until something is sent to it
            waiting = 0
    return max(0, MAX_QUEUED - waiting)


def count_dropped() -> int:
    """How many dropped messages are counted and not yet taken off the counter with
    `subtract_dropped`. Raises what the broker's client raises."""
    with current_app.producer_or_acquire() as producer:
        return int(producer.channel.client.get(DROPPED_COUNTER) or 0)


def subtract_dropped(count: int) -> None:
    """Take what is recorded elsewhere off the counter. Raises as `count_dropped`."""
    with current_app.producer_or_acquire() as producer:
        producer.channel.client.decrby(DROPPED_COUNTER, count)


def _find_queue_name(task: str) -> str:
    name: str = current_app.amqp.router.route({}, task)["queue"].name
    return name
