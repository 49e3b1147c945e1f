"""Which process had which message, so that a recovery can be counted from the last
fault that hit it. Included by the workers of a run; tells nobody but a file, one line a
step, which a kill cannot tear."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from celery.signals import task_postrun, task_prerun, task_received

FOLDER, NAME = "HOLDPOINT_CHAOS_TRACE", "HOLDPOINT_CHAOS_WORKER"
# Their argument leads to an execution, by a message's number or its own id, or is a
# letter's id.
FOLLOWED = {
    "reviews.tasks.execute",
    "reviews.tasks.run_execution",
    "agents.tasks.post",
}


def _write(step: str, task: str, args: Any) -> None:
    folder = os.environ.get(FOLDER)
    if folder is None or task not in FOLLOWED or not args:
        return
    name = os.environ[NAME]
    line = json.dumps([time.time(), name, os.getpid(), step, str(args[0])]) + "\n"
    file = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


@task_received.connect
def received(request: Any, **_: Any) -> None:
    """The worker has it; none of its processes has begun."""
    _write("received", request.name, request.args)


@task_prerun.connect
def begun(task: Any, args: Any, **_: Any) -> None:
    _write("begun", task.name, args)


@task_postrun.connect
def over(task: Any, args: Any, **_: Any) -> None:
    """It returned or raised; a killed one never says so."""
    _write("over", task.name, args)
