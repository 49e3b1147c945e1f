"""The Celery beat scheduler: sends each sweep when it is due and its queue has room."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from celery.beat import Scheduler
from structlog.stdlib import get_logger

from journal import dispatch

# Seconds. Gradual clock correction never moves the clock this far between two ticks.
CLOCK_STEP_S = 0.5

logger = get_logger(__name__)


class Sweeper(Scheduler):  # type: ignore[misc]  # it has no types
    """An in-memory scheduler; a sweep that was not sent is covered by the next one.

    Celery schedules by the time of day. If a host's clock is set back by an hour,
    Celery would send no sweep for an hour, and nothing would expire or be recovered.
    This scheduler therefore detects clock steps and shifts its schedule with them.
    """

    _ahead: float | None = None

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send the sweeps that are due; return the seconds until the next one."""
        ahead = time.time() - time.monotonic()
        if self._ahead is not None and abs(ahead - self._ahead) > CLOCK_STEP_S:
            self._follow(ahead - self._ahead)
        self._ahead = ahead
        return float(super().tick(*args, **kwargs))

    def _follow(self, jump: float) -> None:
        """Shift the last run of each sweep, so that its age stays the same."""
        logger.warning("clock_stepped", seconds=round(jump, 1))
        for entry in self.schedule.values():
            entry.last_run_at += timedelta(seconds=jump)
        self._heap = None

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> Any:
        """Send one sweep unless its queue is full.

        Raises what the broker's client raises; Celery logs the error and continues.
        """
        if not dispatch.count_free_slots(entry.task):
            return None
        return super().apply_async(entry, *args, **kwargs)
