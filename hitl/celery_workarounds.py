"""Workarounds for Celery in workers: broker outages, database connections and beat.

After a broker outage, Celery can lose messages it failed to acknowledge and results it
had half read; two bootsteps repair this. Celery would also open a database connection
for each task, which costs more than most tasks do, so worker processes keep theirs by
Django's rules for web requests: CONN_MAX_AGE and a health check. A third bootstep
restarts the beat inside a worker (`--beat`), which is a process and may be killed.
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

ErrorTypes = tuple[type[Exception], ...]


class TrackedMessage(virtual.Message):
    """A broker message that reports a failed acknowledgement or rejection.

    Celery only logs the failure, and the broker's client keeps counting the message as
    held. Once the count reaches the prefetch limit the client asks for no more
    messages, so no further error occurs: the worker looks alive and does nothing.
    """

    def ack_log_error(
        self, logger: logging.Logger, errors: ErrorTypes, multiple: bool = False
    ) -> None:
        super().ack_log_error(logger, errors, multiple)  # type: ignore[no-untyped-call]
        self._tell()

    def reject_log_error(
        self, logger: logging.Logger, errors: ErrorTypes, requeue: bool = False
    ) -> None:
        super().reject_log_error(logger, errors, requeue)  # type: ignore[no-untyped-call]
        self._tell()

    def _tell(self) -> None:
        if not self.acknowledged:
            self.channel.lost()


class LostAckStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that reconnects a worker after an acknowledgement failed, which resets
    the count of held messages. The broker redelivers the message, which is only a
    nudge."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        channel = parent.task_consumer.channel
        fail = partial(_raise_lost_ack, parent, parent.connection)
        channel.lost = partial(parent.hub.call_later, 0, fail)
        channel.Message = TrackedMessage


def _raise_lost_ack(consumer: Any, connection: Any) -> None:
    if consumer.connection is connection:  # unless the consumer has already reconnected
        raise ConnectionError("a message could not be given back")


class PartialResultStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that reads a half-read pool result to its end when the connection
    breaks.

    Celery would forget the first half and parse the rest as a new result. That ends the
    worker with `Unrecoverable error`.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        hub = parent.hub
        hub.reset = partial(
            _finish_reads_and_reset, hub, parent.pool._pool._result_handler
        )


def _finish_reads_and_reset(hub: Any, results: Any) -> None:
    for pipe, process in list(results.fileno_to_outq.items()):
        results._finish_partial_read(pipe, process)
    type(hub).reset(hub)


STEPS = (LostAckStep, PartialResultStep)


# Celery's setting for the number of tasks that one database connection serves.
SETTING, TASKS = "CELERY_DB_REUSE_MAX", sys.maxsize


@task_prerun.connect
def check_connections(task: Any, **kwargs: Any) -> None:
    """Make Django check the connection's health before the next statement."""
    if not task.request.is_eager:
        close_old_connections()


@task_postrun.connect
def release_connections(task: Any, state: str | None, **kwargs: Any) -> None:
    """Release or close the connections: a task that raised may have been interrupted in
    the middle of a statement."""
    if task.request.is_eager:
        return
    if state == states.SUCCESS:
        close_old_connections()
    else:
        connections.close_all()


BEAT_CHECK_S = 1.0

logger = get_logger(__name__)


class BeatRestartStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that starts another beat when the worker's own has died.

    Celery's worker does not notice and continues without sweeps: nothing would expire,
    be recovered or be sent again.
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
            parent.timer.call_repeatedly(BEAT_CHECK_S, self.look, (parent,))

    def look(self, parent: Any) -> None:
        """Replace the beat if its process has ended."""
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
        """Stop a replacement beat; Celery stops the first one itself."""
        if parent.beat is not self.first:
            parent.beat.stop()
