"""What a worker takes from its broker. Whoever can write there can write anything: a
message that is no task of ours is dropped and counted, and the worker goes on."""

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

# Limits and times that a message may carry and ours never do: they would overrule the
# ladder of time-outs, or keep messages in the worker's memory for years.
NEVER_OURS = ("timelimit", "eta", "expires")
# Of the connection. kombu counts KeyError among these, which is as well a message that
# lacks a member.
BROKEN = (
    OSError,
    InconsistencyError,
    redis.ConnectionError,
    redis.TimeoutError,
    redis.ResponseError,
)

logger = get_logger(__name__)


def distrust_the_broker() -> None:
    """Switch off what workers tell each other over it: Celery has a setting for remote
    control only, and for these two options of its command line. And let each channel
    survive what was held for it."""
    Gossip.compatible_transports = Mingle.compatible_transports = frozenset()
    Channel.QoS = Held


class DropUnreadable(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Celery and kombu expect that what they read was written by them: a message that
    is not JSON, or lacks a member, ends the worker with `Unrecoverable error`."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        channel = parent.task_consumer.channel
        handlers = getattr(channel, "handlers", None)
        if handlers is not None:  # of Redis; a test's broker in memory has none
            handlers["BRPOP"] = partial(_read, channel)
        make = type(parent).create_task_handler
        parent.create_task_handler = partial(_make_handler, parent, make)


def _read(channel: Any, **options: Any) -> Any:
    """One message from the broker. It is out of its queue before it is looked at."""
    try:
        return channel._brpop_read(**options)
    except (Empty, *BROKEN):
        raise
    except Exception as error:  # whatever stands in a message
        _drop(channel, error)
        return True


class Held(QoS):
    """What workers took and did not acknowledge goes back to its queue; an entry that
    cannot be read would keep a worker from starting, and all older ones from theirs."""

    def restore_by_tag(self, tag: Any, *args: Any, **options: Any) -> None:
        try:
            super().restore_by_tag(tag, *args, **options)  # type: ignore[no-untyped-call]
        except BROKEN:
            raise
        except Exception as error:  # whatever stands in a message
            self._remove_from_indices(tag).execute()  # type: ignore[no-untyped-call]
            _drop(self.channel, error)


def _make_handler(parent: Any, make: Callable[..., Any], *args: Any) -> Any:
    handle = make(parent, *args)

    def on_task_received(message: Any) -> Any:
        try:
            _forget_limits(message)
            return handle(message)
        except BROKEN:
            raise
        except Exception as error:  # whatever stands in a message
            message.reject_log_error(logger, parent.connection_errors)
            _drop(message.channel, error)
            return None

    return on_task_received


def _forget_limits(message: Any) -> None:
    for name in NEVER_OURS:
        if name in message.headers:
            message.headers[name] = None


def _drop(channel: Any, error: Exception) -> None:
    """Say it and count it. Never what it said: that may be anybody's."""
    logger.error("broker.message_dropped", error=type(error).__name__)
    with channel.conn_or_acquire() as client:
        client.incr(dispatch.DROPPED)


STEPS = (DropUnreadable,)
