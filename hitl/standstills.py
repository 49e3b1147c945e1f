"""Checks in the web process, every few seconds, whether the workers and the log make
progress."""

from __future__ import annotations

import time
from dataclasses import asdict

from django.db import close_old_connections
from structlog.stdlib import get_logger

from reviews import standstills

from .celery import SWEEPS

log = get_logger(__name__)


class StandstillCheck:
    """The check of one process. Remembers when the process started: a sweep is late
    only if the process has run long enough to notice."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def look(self) -> None:
        """Check once and log what stands still. Ignores errors: /readyz reports an
        unreachable database itself."""
        close_old_connections()
        try:
            uptime = time.monotonic() - self.began
            standing = standstills.update_standstill_alarms(
                periods=SWEEPS, uptime=uptime
            )
        except Exception as error:  # one that escaped would end the watch
            log.warning("standstill.not_looked", error=type(error).__name__)
            return
        if standing.effects or standing.sweeps:
            log.error("standstill", effects=standing.effects, sweeps=standing.sweeps)
        if standing.log:
            log.error("log.stalled", **asdict(standing.log))
