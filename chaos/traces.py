"""Which process had which message and which webhook, in files.

A recovery is counted from the last fault that hit the process. The workers of a run
include this module; it writes one line a step, which a kill cannot tear.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

from celery.signals import (
    task_postrun,
    task_prerun,
    task_received,
    worker_process_init,
)

FOLDER, NAME = "COUNTERSEAL_CHAOS_TRACE", "COUNTERSEAL_CHAOS_WORKER"
# Their argument leads to an execution, by a message's number or its own id.
FOLLOWED = {"hitl.tasks.execute", "hitl.tasks.run_execution"}


def _follow(step: str, task: str, args: Any) -> None:
    if task in FOLLOWED and args:
        _write(step, str(args[0]))


def _write(step: str, subject: str) -> None:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return
    name = os.environ[NAME]
    line = json.dumps([time.time(), name, os.getpid(), step, subject]) + "\n"
    file = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


@task_received.connect
def received(request: Any, **_: Any) -> None:
    """The worker has it; none of its processes has begun."""
    _follow("received", request.name, request.args)


@task_prerun.connect
def begun(task: Any, args: Any, **_: Any) -> None:
    _follow("begun", task.name, args)


@task_postrun.connect
def over(task: Any, args: Any, **_: Any) -> None:
    """It returned or raised; a killed one never says so."""
    _follow("over", task.name, args)


@worker_process_init.connect
def follow_deliveries(**_: Any) -> None:
    """Several of them go in one task."""
    from agents.webhooks import delivery

    delivery.attempt_delivery = _followed(delivery.attempt_delivery)  # type: ignore[assignment]  # as it was called


def _followed(post: Callable[[str], bool]) -> Callable[[str], bool]:
    def followed(delivery_id: str) -> bool:
        _write("begun", delivery_id)
        try:
            return post(delivery_id)
        finally:
            _write("over", delivery_id)

    return followed
