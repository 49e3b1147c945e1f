"""Who tells the time: sends each sweep when it is due, while its queue has room."""

from __future__ import annotations

from typing import Any

from celery.beat import Scheduler

from journal import nudges


class Sweeper(Scheduler):  # type: ignore[misc]  # it has no types
    """In memory: a sweep that was left out is made up for by the next one."""

    def apply_async(self, entry: Any, *args: Any, **kwargs: Any) -> Any:
        """Raises what the broker's client raises; Celery writes it down and goes on."""
        if not nudges.room(entry.task):
            return None
        return super().apply_async(entry, *args, **kwargs)
