"""Measures how long tasks take and counts those that fail, for `/metrics`."""

from __future__ import annotations

import time
from typing import Any

from celery.signals import (
    task_failure,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
)

from .measurements import Measurements


class TaskTimer:
    """Measures the tasks of this process. Connects itself to Celery. The main process
    of a worker runs none, and counts those that it had to kill."""

    def __init__(self, measurements: Measurements) -> None:
        self.measurements = measurements
        self._began: dict[str, float] = {}
        for signal, handler in (
            (task_prerun, self.begin_task),
            (task_postrun, self.end_task),
            (task_failure, self.count_failure),
            (worker_process_init, self.start_reporting),
            (worker_ready, self.start_reporting),
            (worker_process_shutdown, self.stop_reporting),
            (worker_shutdown, self.stop_reporting),
        ):
            signal.connect(handler, weak=False)

    def start_reporting(self, **kwargs: Any) -> None:
        self.measurements.start_reporting()

    def stop_reporting(self, **kwargs: Any) -> None:
        self.measurements.stop_reporting()

    def begin_task(self, task_id: str, task: Any, **kwargs: Any) -> None:
        if not task.request.is_eager:
            self._began[task_id] = time.perf_counter()

    def end_task(self, task_id: str, task: Any, **kwargs: Any) -> None:
        began = self._began.pop(task_id, None)
        if began is not None:
            seconds = time.perf_counter() - began
            self.measurements.observe("task_seconds", seconds, task.name)

    def count_failure(self, sender: Any = None, **kwargs: Any) -> None:
        if not getattr(sender.request, "is_eager", False):
            self.measurements.count("task_failures", sender.name)
