"""Who tells the time: sends each sweep when it is due, while its queue has room."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

from celery.beat import Scheduler
from structlog.stdlib import get_logger

from journal import dispatch

# Seconds by which a clock that is being corrected does not jump at once.
STEP_S = 0.5

logger = get_logger(__name__)


class Sweeper(Scheduler):  # type: ignore[misc]  # it has no types
    """In memory: a sweep that was left out is made up for by the next one.

    Celery reckons with the time of day. A host whose clock is put back an hour would
    send no sweep for an hour, in which nothing lapses or is recovered.
    """

    _ahead: float | None = None

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; seconds until the next may be."""
        ahead = time.time() - time.monotonic()
        if self._ahead is not None and abs(ahead - self._ahead) > STEP_S:
            self._follow(ahead - self._ahead)
        self._ahead = ahead
        return float(super().tick(*args, **kwargs))

    def _follow(self, jump: float) -> None:
        """As if the clock had always been as it is now: each sweep ran as long ago."""
        logger.warning("clock_stepped", seconds=round(jump, 1))
        for entry in self.schedule.values():
            entry.last_run_at += timedelta(seconds=jump)
        self._heap = None

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> Any:
        """Raises what the broker's client raises; Celery writes it down and goes on."""
        if not dispatch.room(entry.task):
            return None
        return super().apply_async(entry, *args, **kwargs)
