"""What a worker needs beside Celery's own in order to carry on when its broker had been
away: it must notice that, and must not lose its place in what its pool tells it.

A process of a worker keeps its database connection from task to task, by the rules
that Django has for web requests: CONN_MAX_AGE, and a look whether it still works.

Celery would open one for every task, which costs more than most tasks do.

The beat inside a worker (`--beat`) is a process like any other: it may be killed.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import Any

from celery import bootsteps, states
from celery.beat import EmbeddedService
from celery.signals import task_postrun, task_prerun
from django.db import close_old_connections, connections
from kombu.transport import virtual
from structlog.stdlib import get_logger

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


# Celery's own name for how many tasks one connection serves.
SETTING, TASKS = "CELERY_DB_REUSE_MAX", sys.maxsize


@task_prerun.connect
def begin(task: Any, **kwargs: Any) -> None:
    """The next statement asks first whether the connection still works."""
    if not task.request.is_eager:
        close_old_connections()


@task_postrun.connect
def end(task: Any, state: str | None, **kwargs: Any) -> None:
    """A task that raised may have been interrupted in the middle of a statement."""
    if task.request.is_eager:
        return
    if state == states.SUCCESS:
        close_old_connections()
    else:
        connections.close_all()


LOOK_S = 1.0

logger = get_logger(__name__)


class KeepBeat(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Starts another beat when the worker's own has died. Celery's worker does not
    notice, and goes on without a sweep: nothing would lapse, recover or be sent again.
    """

    requires = (
        "celery.worker.components:Timer",
        "celery.worker.components:Beat",
    )
    first = None

    def start(self, parent: Any) -> None:
        """Does nothing in a worker without a beat."""
        if parent.beat is not None:
            self.first = parent.beat
            parent.timer.call_repeatedly(LOOK_S, self.look, (parent,))

    def look(self, parent: Any) -> None:
        if parent.beat.is_alive():
            return
        logger.error("beat_died", exitcode=parent.beat.exitcode)
        parent.beat = EmbeddedService(
            parent.app,
            schedule_filename=parent.schedule_filename,
            scheduler_cls=parent.scheduler,
        )
        parent.beat.start()

    def stop(self, parent: Any) -> None:
        """The first one is stopped by who started it."""
        if parent.beat is not self.first:
            parent.beat.stop()
