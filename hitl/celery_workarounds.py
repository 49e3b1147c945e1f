"""Workarounds for faults of Celery, kombu and billiard, one class or function each.

Each docstring has four parts:

- Symptom: what happens without the workaround.
- Upstream: the issue, or the function at fault where no issue describes it.
- Needed with: the newest releases whose source was read and has the fault. A test fails
  once a newer one is installed. Then read that source again, and remove the workaround
  or raise the version.
- Remove when: what a release must do to make the workaround superfluous.

The workarounds for messages that cannot be read are in `hitl/broker_messages.py`: they
are the largest, and they also protect against people who can write to the broker.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from datetime import timedelta
from functools import partial
from typing import Any

from celery import bootsteps, states
from celery.beat import EmbeddedService, Scheduler
from celery.signals import (
    beat_embedded_init,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_shutting_down,
)
from celery.worker.consumer import Gossip, Mingle
from django.db import close_old_connections, connections
from kombu.transport import virtual
from structlog.stdlib import get_logger

from . import child_processes

logger = get_logger(__name__)


# Broker outages

ErrorTypes = tuple[type[Exception], ...]


class LostAckStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that reconnects a worker after an acknowledgement failed, which resets
    the count of held messages. The broker redelivers the message, which is only a
    nudge.

    Symptom: after a broker outage the worker looks alive and does nothing. kombu logs
    `Couldn't ack` and keeps counting the message as held. Once the count reaches the
    prefetch limit, kombu asks for no more messages, so no further error occurs.

    Upstream: `kombu.message.Message.ack_log_error` and `reject_log_error` swallow the
    error. No issue describes it for Redis. With RabbitMQ it is celery/celery#3773
    (Couldn't ack, reason: BrokenPipeError(32, 'Broken pipe')), open. celery/kombu#1231
    (fix: raise BrokenPipeError exit on brokenpipe instead of hanging around) raises
    that one error; other connection errors are still swallowed.

    Needed with: kombu up to 5.7.0.

    Remove when: both methods raise every connection error, or a message that could not
    be acknowledged no longer counts as held.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def start(self, parent: Any) -> None:
        channel = parent.task_consumer.channel
        fail = partial(_raise_lost_ack, parent, parent.connection)
        channel.lost = partial(parent.hub.call_later, 0, fail)
        channel.Message = TrackedMessage


class TrackedMessage(virtual.Message):
    """A broker message that tells its channel of a failed acknowledgement or
    rejection. For `LostAckStep`."""

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


def _raise_lost_ack(consumer: Any, connection: Any) -> None:
    if consumer.connection is connection:  # unless the consumer has already reconnected
        raise ConnectionError("a message could not be given back")


class PartialResultStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that reads a half-read pool result to its end when the connection
    breaks.

    Symptom: after a broker outage the worker ends with `Unrecoverable error`. Celery
    forgets the first half of the result and parses the rest as a new one.

    Upstream: `celery.worker.loops.asynloop` calls `hub.reset()`, which drops the
    generator of `celery.concurrency.asynpool.ResultHandler._recv_message` in the middle
    of a message. No issue describes it. Celery 5.7.0 finishes such a read when a worker
    shuts down, by `_finish_partial_read`, and not when the connection breaks.

    Needed with: celery up to 5.7.0.

    Remove when: `asynloop` finishes partial reads before it resets the hub, or the
    reset leaves the pool's readers alone.
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


def disable_gossip() -> None:
    """Disable the messages by which Celery's workers watch and greet each other: gossip
    and mingle.

    Symptom: anybody with write access to the broker can send workers such messages, and
    the workers read them.

    Upstream: celery/celery#2566 (Missing config options for --without-mingle and
    --without-gossip), open. `Gossip.__init__` and `Mingle.__init__` only read options
    of the command line, which a deployment may forget.

    Needed with: celery up to 5.7.0.

    Remove when: Celery has a setting for both.
    """
    Gossip.compatible_transports = Mingle.compatible_transports = frozenset()


# Beat

BEAT_CHECK_S = 1.0
# Seconds. Gradual clock correction never moves the clock this far between two ticks.
CLOCK_STEP_S = 0.5


class BeatRestartStep(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that starts another beat when the worker's own has died.

    Symptom: the beat inside a worker (`--beat`) is a process and may be killed. The
    worker does not notice and continues without sweeps: nothing would expire, be
    recovered or be sent again.

    Upstream: `celery.worker.components.Beat` starts and stops the process and never
    looks at it in between. No issue describes it.

    Needed with: celery up to 5.7.0.

    Remove when: Celery's worker restarts its beat, or ends when the beat has died.
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


class ClockStepScheduler(Scheduler):  # type: ignore[misc]  # it has no types
    """An in-memory scheduler that detects clock steps and shifts its schedule with
    them.

    Symptom: when a host's clock is set back by an hour, Celery sends no sweep for an
    hour, and nothing expires or is recovered.

    Upstream: celery/celery#6742 (System datetime change effects, beat service stops
    activities), open. `celery.schedules.schedule.is_due` compares times of day.

    Needed with: celery up to 5.7.0.

    Remove when: Celery measures intervals by the monotonic clock.
    """

    _ahead: float | None = None

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send the entries that are due; return the seconds until the next one."""
        ahead = time.time() - time.monotonic()
        if self._ahead is not None and abs(ahead - self._ahead) > CLOCK_STEP_S:
            self._follow(ahead - self._ahead)
        self._ahead = ahead
        return float(super().tick(*args, **kwargs))

    def _follow(self, jump: float) -> None:
        """Shift the last run of each entry, so that its age stays the same."""
        logger.warning("clock_stepped", seconds=round(jump, 1))
        for entry in self.schedule.values():
            entry.last_run_at += timedelta(seconds=jump)
        self._heap = None


# Processes that outlive their worker

IMPORTING_PID = os.getpid()  # the worker's own id; its children are forked from it
# How long a stopping worker waits for its tasks. It ends before the 20 to 30 s are over
# after which a process manager or a container platform kills it.
STOP_WITHIN_S = 15.0


@worker_process_init.connect
@beat_embedded_init.connect
def end_with_worker(**kwargs: Any) -> None:
    """Make pool and beat processes die with their worker. Tasks tolerate being killed
    at any point.

    Symptom: the beat of a killed worker lives on and runs beside the next worker's
    beat.

    Upstream: `celery.beat._Process.run` asks the kernel for no parent-death signal.
    celery/celery#6942 (Kill all workers when main process exits in prefork model) does
    so for pool processes only, and does not see a worker that had died before.

    Needed with: celery up to 5.7.0.

    Remove when: Celery asks for that signal in the beat's process too, and both kinds
    of process end when their worker is already dead.
    """
    forked = os.getpid() != IMPORTING_PID
    child_processes.signal_on_parent_death(
        IMPORTING_PID if forked else os.getppid(), signal.SIGKILL
    )


class ShutdownDeadline(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Bootstep that bounds how long a worker may live that stops after an error. Tasks
    tolerate being killed at any point.

    Symptom: a worker whose host slept can find its pool broken, log `Unrecoverable
    error` and then wait for that pool for ever. It looks alive and does nothing, and no
    supervisor replaces it.

    Upstream: `celery.concurrency.prefork.TaskPool.on_stop` waits in
    `billiard.pool.Pool.join`, which has no time limit. celery/celery#2171 (Celery child
    processes die; Unrecoverable error: EOFError() thrown), closed, reports a worker
    that lives on like this.

    Needed with: celery up to 5.7.0, billiard up to 4.3.2.

    Remove when: a worker that stops after an error ends within a configured time.
    """

    def close(self, parent: Any) -> None:
        exit_within(STOP_WITHIN_S)


@worker_shutting_down.connect
def bound_shutdown(**kwargs: Any) -> None:
    """End a worker within `STOP_WITHIN_S` seconds after SIGTERM, whatever it waits for.
    It takes no new task meanwhile. A message that it still had comes back, and a sweep
    queues an effect again whose attempt broke off.

    Symptom: SIGTERM waits for the running tasks without a limit, or, with
    `worker_soft_shutdown_timeout`, always for the whole of that time as soon as a
    single task runs.

    Upstream: `celery.worker.WorkController.wait_for_soft_shutdown` sleeps inside the
    handler of the signal. No issue describes it.

    Needed with: celery up to 5.7.0.

    Remove when: Celery ends a warm shutdown within a configured time.
    """
    exit_within(STOP_WITHIN_S)


def exit_within(seconds: float) -> None:
    """End this process after `seconds`, whatever it waits for. Its children end with
    it."""
    timer = threading.Timer(seconds, os._exit, [1])
    timer.daemon = True
    timer.start()


# Database connections


def keep_connections(app: Any) -> None:
    """Make worker processes keep their database connections by Django's rules for web
    requests, CONN_MAX_AGE and a health check: Celery closes none, and
    `check_connections` and `release_connections` do what Django does around a request.

    Symptom: Celery opens a database connection for each task, which costs more than
    most tasks do.

    Upstream: `celery.fixups.django.DjangoWorkerFixup.close_database`, as in
    celery/celery#4116 (Django celery fixup doesn't respect Django settings for
    PostgreSQL connections), closed. Celery 5.6.0 closes every connection again, by
    celery/celery#9824 (Revert "Use Django DB max age connection setting"): Django does
    not see that a time limit has interrupted a statement. `release_connections`
    therefore closes the connections of each task that raised.

    Needed with: celery up to 5.7.0.

    Remove when: Celery heeds CONN_MAX_AGE and closes the connections of a failed task.
    """
    # Celery's number of tasks that one connection serves.
    app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize


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


WORKER_STEPS = (ShutdownDeadline, BeatRestartStep)
CONSUMER_STEPS = (LostAckStep, PartialResultStep)
