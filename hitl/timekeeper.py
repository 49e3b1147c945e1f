"""The beat inside a worker (`--beat`) is a process like any other: it may be killed."""

from __future__ import annotations

from typing import Any

from celery import bootsteps
from celery.beat import EmbeddedService
from structlog.stdlib import get_logger

LOOK_S = 1.0

logger = get_logger(__name__)


class KeepBeat(bootsteps.StartStopStep):  # type: ignore[misc]  # it has no types
    """Starts another beat when the worker's own has died. Celery's worker does not
    notice, and goes on without a sweep: nothing would lapse, recover or be sent again.
    """

    requires = (
        "celery.worker.components:Timer",
        "celery.worker.components:Beat",
    )
    first = None

    def start(self, parent: Any) -> None:
        """Does nothing in a worker without a beat."""
        if parent.beat is not None:
            self.first = parent.beat
            parent.timer.call_repeatedly(LOOK_S, self.look, (parent,))

    def look(self, parent: Any) -> None:
        if parent.beat.is_alive():
            return
        logger.error("beat_died", exitcode=parent.beat.exitcode)
        parent.beat = EmbeddedService(
            parent.app,
            schedule_filename=parent.schedule_filename,
            scheduler_cls=parent.scheduler,
        )
        parent.beat.start()

    def stop(self, parent: Any) -> None:
        """The first one is stopped by who started it."""
        if parent.beat is not self.first:
            parent.beat.stop()
