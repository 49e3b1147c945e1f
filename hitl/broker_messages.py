"""Protects a worker from the messages in its broker.

Anybody with write access to the broker can put any message there. The worker drops and
counts each message that is not a valid task of ours, and continues.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import Empty
from typing import Any

import redis
from celery import bootsteps
from celery.worker.consumer import Gossip, Mingle
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


def harden_broker_reads() -> None:
    """Disable gossip and mingle between workers, and make channels tolerate unreadable
    unacknowledged messages.

    Celery has a setting only for remote control; gossip and mingle are options of its
    command line, which a deployment may forget.
    """
    Gossip.compatible_transports = Mingle.compatible_transports = frozenset()
    Channel.QoS = TolerantQoS


class UnreadableMessageStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that makes a consumer drop messages it cannot read.

    Celery and kombu assume that they wrote every message they read. Without this step,
    a message that is not JSON, or that lacks a member, ends the worker with
    `Unrecoverable error`.
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


class TolerantQoS(QoS):
    """Restores unacknowledged messages to their queue and drops those it cannot read.

    Otherwise one unreadable entry would stop every worker from starting, and keep all
    older messages from being restored.
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


STEPS = (UnreadableMessageStep,)
