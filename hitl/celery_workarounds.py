"""What a worker needs beside Celery's own in order to carry on when its broker had been
away: it must notice that, and must not lose its place in what its pool tells it."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from celery import bootsteps
from kombu.transport import virtual

Errors = tuple[type[Exception], ...]


class Delivery(virtual.Message):
    """A message that tells when it could not be given back to the broker.

    Celery only writes that down, and the broker's client counts the message as held
    from then on. Once it counts as many as the worker may hold it asks for no more, so
    nothing fails any more either: the worker looks alive and does nothing, for ever.
    """

    def ack_log_error(
        self, logger: logging.Logger, errors: Errors, multiple: bool = False
    ) -> None:
        super().ack_log_error(logger, errors, multiple)  # type: ignore[no-untyped-call]
        self._tell()

    def reject_log_error(
        self, logger: logging.Logger, errors: Errors, requeue: bool = False
    ) -> None:
        super().reject_log_error(logger, errors, requeue)  # type: ignore[no-untyped-call]
        self._tell()

    def _tell(self) -> None:
        if not self.acknowledged:
            self.channel.lost()


class NoticeLostAcks(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """A worker that could not give a message back connects anew, and counts from
    nothing. The broker hands the message out again; it is only a nudge."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        channel = parent.task_consumer.channel
        fail = partial(_fail, parent, parent.connection)
        channel.lost = partial(parent.hub.call_later, 0, fail)
        channel.Message = Delivery


def _fail(consumer: Any, connection: Any) -> None:
    if consumer.connection is connection:  # and not one that came after it
        raise ConnectionError("a message could not be given back")


class KeepResults(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """A result that is half read when the connection breaks is read to its end.

    Celery forgets the half that it had, takes the rest for a new result, says
    `Unrecoverable error`, and the worker is over.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        hub = parent.hub
        hub.reset = partial(_read_and_reset, hub, parent.pool._pool._result_handler)


def _read_and_reset(hub: Any, results: Any) -> None:
    for pipe, process in list(results.fileno_to_outq.items()):
        results._finish_partial_read(pipe, process)
    type(hub).reset(hub)


STEPS = (NoticeLostAcks, KeepResults)
