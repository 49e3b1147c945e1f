"""Protects a worker from the messages in its broker.

Anybody with write access to the broker can put any message there. The worker drops and
counts each message that is not a valid task of ours, and continues. The docstrings have
the form that `hitl/celery_workarounds.py` explains.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import Empty
from typing import Any

import redis
from celery import bootsteps
from kombu.exceptions import InconsistencyError
from kombu.transport.redis import Channel, QoS
from structlog.stdlib import get_logger

from journal import dispatch

# Headers that our messages never carry. In a forged message they would override the
# configured time-outs, or keep messages in the worker's memory for years.
IGNORED_HEADERS = ("timelimit", "eta", "expires")
# Errors of the connection. kombu's own list also has KeyError, which is raised for a
# message that lacks a member too.
CONNECTION_ERRORS = (
    OSError,
    InconsistencyError,
    redis.ConnectionError,
    redis.TimeoutError,
    redis.ResponseError,
)

logger = get_logger(__name__)


class UnreadableMessageStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that makes a consumer drop messages it cannot read.

    Symptom: a message that is not JSON, or that lacks a member, ends the worker with
    `Unrecoverable error`.

    Upstream: celery/celery#7975 (Celery Getting Killed if message in queue is not in
    proper format.) and celery/celery#4308 (Worker dies if unable to decode a message),
    both open. `kombu.transport.redis.Channel._brpop_read` and
    `celery.worker.consumer.Consumer.create_task_handler` assume that Celery wrote every
    message.

    Needed with: celery up to 5.7.0, kombu up to 5.7.0.

    Remove when: both reject a message that they cannot read, whatever is wrong in it,
    and Celery can ignore the headers in `IGNORED_HEADERS`.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        channel = parent.task_consumer.channel
        handlers = getattr(channel, "handlers", None)
        if handlers is not None:  # absent in the tests' in-memory broker
            handlers["BRPOP"] = partial(_read_message, channel)
        make = type(parent).create_task_handler
        parent.create_task_handler = partial(_make_handler, parent, make)


def _read_message(channel: Any, **options: Any) -> Any:
    """Read one message. It has already left its queue when parsing fails."""
    try:
        return channel._brpop_read(**options)
    except (Empty, *CONNECTION_ERRORS):
        raise
    except Exception as error:  # a message can cause any error
        _record_dropped(channel, error)
        return True


def tolerate_unreadable_restores() -> None:
    """Make all channels of this process restore messages by `TolerantQoS`."""
    Channel.QoS = TolerantQoS


class TolerantQoS(QoS):
    """Restores unacknowledged messages to their queue and drops those it cannot read.

    Symptom: one unreadable entry among the unacknowledged messages stops every worker
    from starting, and keeps all older messages from being restored.

    Upstream: `kombu.transport.redis.QoS.restore_by_tag` parses the entry and lets the
    error end the loop of `restore_visible`. No issue describes it.

    Needed with: kombu up to 5.7.0.

    Remove when: `restore_visible` continues after an entry that it cannot read, and
    removes that entry.
    """

    def restore_by_tag(self, tag: Any, *args: Any, **options: Any) -> None:
        try:
            super().restore_by_tag(tag, *args, **options)  # type: ignore[no-untyped-call]
        except CONNECTION_ERRORS:
            raise
        except Exception as error:  # a message can cause any error
            self._remove_from_indices(tag).execute()  # type: ignore[no-untyped-call]
            _record_dropped(self.channel, error)


def _make_handler(parent: Any, make: Callable[..., Any], *args: Any) -> Any:
    handle = make(parent, *args)

    def on_task_received(message: Any) -> Any:
        try:
            _clear_limits(message)
            return handle(message)
        except CONNECTION_ERRORS:
            raise
        except Exception as error:  # a message can cause any error
            message.reject_log_error(logger, parent.connection_errors)
            _record_dropped(message.channel, error)
            return None

    return on_task_received


def _clear_limits(message: Any) -> None:
    for name in IGNORED_HEADERS:
        if name in message.headers:
            message.headers[name] = None


def _record_dropped(channel: Any, error: Exception) -> None:
    """Log and count a dropped message. Leaves out the error's text, which may quote the
    message."""
    logger.error("broker.message_dropped", error=type(error).__name__)
    with channel.conn_or_acquire() as client:
        client.incr(dispatch.DROPPED_COUNTER)


CONSUMER_STEPS = (UnreadableMessageStep,)
