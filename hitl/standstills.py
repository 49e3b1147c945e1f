"""Looking every few seconds in the web process whether the worker works."""

from __future__ import annotations

import time

from django.db import close_old_connections
from structlog.stdlib import get_logger

from reviews import standstills

from .celery import SWEEPS

log = get_logger(__name__)


class Standstills:
    """One process's look: what it says depends on how long it has been looking."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def look(self) -> None:
        """Once. A database that cannot be asked says so at /readyz by itself."""
        close_old_connections()
        try:
            uptime = time.monotonic() - self.began
            found = standstills.look(periods=SWEEPS, uptime=uptime)
        except Exception as error:  # or nobody would look any more
            log.warning("standstill.not_looked", error=type(error).__name__)
            return
        if found.effects or found.sweeps:
            log.error("standstill", effects=found.effects, sweeps=found.sweeps)
