"""Records that sweeps and effects run: workers write a heartbeat, at most once every
few seconds, after a task that succeeded."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

from celery.signals import task_success
from django.db import DatabaseError
from structlog.stdlib import get_logger

from journal import heartbeats

# Tasks that perform effects: a run of one shows that workers take up effects.
EFFECT_TASKS = ("hitl.tasks.execute", "hitl.tasks.run_execution")
WRITE_INTERVAL_S = 5.0  # the least time between two heartbeats of one task and process

logger = get_logger(__name__)


class HeartbeatRecorder:
    """Writes the heartbeats of the named tasks. Connects itself to Celery."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = names
        self._written: dict[str, float] = {}
        task_success.connect(self.note, weak=False)

    def note(self, sender: Any = None, **kwargs: Any) -> None:
        name, now = sender.name, time.monotonic()
        if name not in self.names or sender.request.is_eager:
            return
        if now - self._written.get(name, -WRITE_INTERVAL_S) < WRITE_INTERVAL_S:
            return
        try:
            heartbeats.record_heartbeat(name)
        except DatabaseError as error:  # the next run writes it
            logger.warning("heartbeat.not_written", error=type(error).__name__)
        else:
            self._written[name] = now
