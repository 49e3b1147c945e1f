"""The Celery application, its beat schedule and the start-up of workers.

Each message carries one id as JSON. The database holds the state, so a message may be
lost, late, repeated or forged without harm.
"""

from __future__ import annotations

import gc
import json
import os
from typing import Any, TextIO

import celery
import celery.apps.worker
from celery.loaders.app import AppLoader
from celery.signals import (
    beat_init,
    setup_logging,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
)
from django.conf import settings
from structlog.contextvars import bind_contextvars, clear_contextvars
from structlog.processors import TimeStamper
from structlog.stdlib import get_logger

from journal import dispatch

from . import broker_messages, celery_workarounds, checks, heartbeats, task_times
from .environment import end_on_wrong_settings
from .garbage_collection import suspend_collection
from .measurements import measurements
from .worker_register import WorkerRegister

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.settings")
with end_on_wrong_settings():
    settings.COUNTERSEAL  # noqa: B018 they are read by the first look at one
# Celery would run all of Django's checks, which import every page, and then ignore
# their results. `check_before_work` runs the checks that concern a worker.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

# Seconds between two runs of each sweep. Sweeps are the guarantee; nudges add speed.
SWEEPS = {
    "journal.tasks.sweep_outbox": 2,
    "journal.tasks.sequence": 1,
    "journal.tasks.prune_outbox": 10,
    "journal.tasks.begin_period": 30,
    "hitl.tasks.prune": 60,
    "agents.tasks.prune": 60,
    "hitl.tasks.watch_epoch": 5,
    "hitl.tasks.close_recall_windows": 1,
    "hitl.tasks.expire_due": 1,
    "hitl.tasks.hold_deadlines": 2,
    "hitl.tasks.recover_leases": 5,
    "hitl.tasks.pulse_effects": 5,
    "hitl.tasks.watch": 30,
    "hitl.tasks.audit_refused": 30,
    "hitl.tasks.look_up_unknown": 10,
    "hitl.tasks.lapse_repairs": 60,
    "hitl.tasks.lapse_holds": 5,
    "hitl.tasks.enter_searched": 2,
    "hitl.tasks.drop_old_drafts": 3600,
    "hitl.tasks.drop_old_exports": 3600,
    "hitl.tasks.lapse_unanswered": 600,
    "hitl.tasks.queue_executions": 2,
    "hitl.tasks.tidy_batches": 5,
    "agents.tasks.post_due": 2,
    "hitl.tasks.remind_before_deadline": 15,
    "hitl.tasks.update_statistics": 60,
    "hitl.tasks.run_canaries": 30,
    "hitl.tasks.choose_second_reviews": 300,
    "hitl.tasks.export_traces": 10,
}
STAMP = TimeStamper(fmt="iso", utc=True)


class TaskLoader(AppLoader):  # type: ignore[misc]  # Celery has no types
    """Imports Django and the modules of the tasks when a worker starts."""

    def import_default_modules(self) -> Any:
        """Import them, and return the modules."""
        with suspend_collection():
            return super().import_default_modules()


app = celery.Celery("counterseal", loader="hitl.celery:TaskLoader")
# Make it the default for every thread of the web process. Otherwise only the importing
# thread would know it, and the others would try to reach RabbitMQ.
app.set_default()
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
celery_workarounds.keep_connections(app)
heartbeat_recorder = heartbeats.HeartbeatRecorder({*SWEEPS, *heartbeats.EFFECT_TASKS})
task_timer = task_times.TaskTimer(measurements)
worker_register = WorkerRegister()
app.conf.beat_schedule = {
    name: {"task": name, "schedule": seconds} for name, seconds in SWEEPS.items()
}


@setup_logging.connect
def keep_our_logging(**kwargs: Any) -> None:
    """Connecting this handler is enough: Celery then leaves LOGGING from settings
    alone."""


@task_prerun.connect
def bind_task(task_id: str, task: Any, **kwargs: Any) -> None:
    """Add the task's id and name to its log lines."""
    clear_contextvars()
    bind_contextvars(task_id=task_id, task=task.name)


@task_postrun.connect
def unbind_task(**kwargs: Any) -> None:
    clear_contextvars()


@worker_init.connect
@beat_init.connect
def check_before_work(**kwargs: Any) -> None:
    """Refuse to start with time-outs that would let an effect happen twice."""
    for warning in checks.run_startup_checks():
        get_logger(__name__).warning(str(warning.msg))
    for text in checks.check_known_keys(serving=True):
        get_logger(__name__).warning(text)
    served = sorted(app.amqp.queues.consume_from)
    get_logger(__name__).info(
        "worker", ladder=dict(checks.list_timeouts()), queues=served
    )


@worker_process_init.connect
def freeze_imported_objects(**kwargs: Any) -> None:
    """Exclude imported objects from garbage collection in pool processes.

    A pool process is forked from a worker that has imported everything. Scanning those
    permanent objects takes a full collection a sixth of a second, in which a sweep or
    an effect would pause.
    """
    gc.freeze()


def say_in_json(text: str, file: TextIO | None = None) -> None:
    """What Celery says while it handles a signal, as a line of the log. No logger may
    be used there: the signal may have come while it held its lock."""
    line = {"event": text, "level": "warning", "logger": "celery.apps.worker"}
    os.write(2, f"{json.dumps(STAMP(None, '', line))}\n".encode())


class Sweeper(celery_workarounds.ClockStepScheduler):
    """The beat scheduler: sends each sweep when it is due and its queue has room. A
    sweep that was not sent is covered by the next one."""

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> Any:
        """Send one sweep unless its queue is full.

        Raises what the broker's client raises; Celery logs the error and continues.
        """
        if not dispatch.count_free_slots(entry.task):
            return None
        return super().apply_async(entry, *args, **kwargs)


app.steps["worker"].update(celery_workarounds.WORKER_STEPS)
app.steps["consumer"].update(
    [*celery_workarounds.CONSUMER_STEPS, *broker_messages.CONSUMER_STEPS]
)
celery_workarounds.disable_gossip()
if settings.COUNTERSEAL.log_format == "json":
    celery.apps.worker.safe_say = say_in_json
broker_messages.tolerate_unreadable_restores()
