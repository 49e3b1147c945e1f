"""The worker's side. Messages carry one id as JSON; what is true is in the database,
so a message may be lost, late, repeated or forged."""

from __future__ import annotations

import gc
import os
import signal
import threading
from typing import Any

import celery
from celery import bootsteps
from celery.signals import (
    beat_embedded_init,
    beat_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
)
from structlog.contextvars import bind_contextvars, clear_contextvars
from structlog.stdlib import get_logger

from . import broker_messages, celery_workarounds, checks, child_processes, heartbeats

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")

# How often each sweep looks, in seconds. Sweeps are the guarantee; nudges are speed.
SWEEPS = {
    "journal.tasks.sweep_outbox": 2,
    "journal.tasks.sequence": 1,
    "journal.tasks.prune_outbox": 10,
    "reviews.tasks.prune": 60,
    "agents.tasks.prune": 60,
    "reviews.tasks.watch_epoch": 5,
    "reviews.tasks.close_recall_windows": 1,
    "reviews.tasks.expire_due": 1,
    "reviews.tasks.hold_deadlines": 2,
    "reviews.tasks.recover_leases": 5,
    "reviews.tasks.pulse_effects": 5,
    "reviews.tasks.watch": 30,
    "reviews.tasks.audit_refused": 30,
    "reviews.tasks.look_up_unknown": 10,
    "reviews.tasks.lapse_repairs": 60,
    "reviews.tasks.lapse_leases": 5,
    "reviews.tasks.enter_searched": 2,
    "reviews.tasks.drop_old_drafts": 3600,
    "reviews.tasks.drop_old_exports": 3600,
    "reviews.tasks.queue_executions": 2,
    "reviews.tasks.tidy_batches": 5,
    "agents.tasks.post_due": 2,
    "reviews.tasks.remind_before_deadline": 15,
}

# Seconds beyond what a task may take, in which a worker that is asked to end must have.
SPARE_S = 5.0

IMPORTED_BY = os.getpid()  # the worker itself: its children are forked from it

app = celery.Celery("holdpoint")
# For every thread of the web process; otherwise only the importing one knows it, and
# the others would look for RabbitMQ.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf[celery_workarounds.SETTING] = celery_workarounds.TASKS
pulse = heartbeats.Pulse({*SWEEPS, *heartbeats.PERFORM})
app.conf.beat_schedule = {
    name: {"task": name, "schedule": seconds} for name, seconds in SWEEPS.items()
}


@setup_logging.connect
def keep_our_logging(**kwargs: Any) -> None:
    """Being connected is enough: Celery then leaves the LOGGING of settings alone."""


@task_prerun.connect
def bind_task(task_id: str, task: Any, **kwargs: Any) -> None:
    clear_contextvars()
    bind_contextvars(task_id=task_id, task=task.name)


@task_postrun.connect
def unbind_task(**kwargs: Any) -> None:
    clear_contextvars()


@worker_init.connect
@beat_init.connect
def check_before_work(**kwargs: Any) -> None:
    """Refuse to work with time-outs that would let an effect happen twice."""
    for warning in checks.refuse_unsafe():
        get_logger(__name__).warning(str(warning.msg))
    served = sorted(app.amqp.queues.consume_from)
    get_logger(__name__).info("worker", ladder=dict(checks.rungs()), queues=served)


@worker_process_init.connect
@beat_embedded_init.connect
def end_with_the_worker(**kwargs: Any) -> None:
    """Pool and beat processes of a worker that was killed: a beat that lived on would
    be a second one beside the next worker's. Tasks may die at any point anyway."""
    forked = os.getpid() != IMPORTED_BY
    child_processes.die_with(IMPORTED_BY if forked else os.getppid(), signal.SIGKILL)


@worker_process_init.connect
def spare_what_was_imported(**kwargs: Any) -> None:
    """A pool process is forked from a worker that has imported everything: what stays
    for ever is not looked through by each full collection of garbage, a sixth of a
    second in which a sweep or an effect would stand still."""
    gc.freeze()


class LastCall(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """A worker that comes to an end, by an error of its own too, is gone within bounds.

    One that slept can find its pool broken, say `Unrecoverable error` and then wait for
    that pool without end: it would look alive and do nothing, and no supervisor would
    start another. Tasks may die at any point anyway.
    """

    def close(self, parent: Any) -> None:
        conf = parent.app.conf
        leave_within(conf.task_time_limit + conf.worker_soft_shutdown_timeout + SPARE_S)


def leave_within(seconds: float) -> None:
    """End this process after so long, whatever it waits for; its children end with
    it."""
    timer = threading.Timer(seconds, os._exit, [1])
    timer.daemon = True
    timer.start()


app.steps["worker"].update([LastCall, celery_workarounds.KeepBeat])
app.steps["consumer"].update([*celery_workarounds.STEPS, *broker_messages.STEPS])
broker_messages.distrust_the_broker()
