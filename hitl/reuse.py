"""A process of a worker keeps its database connection from task to task, by the rules
that Django has for web requests: CONN_MAX_AGE, and a look whether it still works.

Celery would open one for every task, which costs more than most tasks do.
"""

from __future__ import annotations

import sys
from typing import Any

from celery import states
from celery.signals import task_postrun, task_prerun
from django.db import close_old_connections, connections

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
