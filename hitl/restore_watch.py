"""Checks whether the database was replaced by a restored backup.

Each worker checks when it starts and then by a sweep; the web process checks when it
starts and every few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery.signals import task_prerun, worker_init
from django.db import close_old_connections, connections
from structlog.stdlib import get_logger

from journal import failover
from reviews import recovery

CHECK_INTERVAL_S = 5.0

log = get_logger(__name__)


CheckFunction = Callable[[], None]


def check_epoch() -> None:
    """Check once and log what is found. Ignores errors: while the database cannot be
    reached, nothing runs either."""
    close_old_connections()
    try:
        why = recovery.watch_for_restore()
    except Exception as error:  # one that escaped would end the watch
        log.warning("epoch.not_looked", error=type(error).__name__)
        return
    if why == failover.WAITING:
        log.warning("failover.waiting")
    elif why:
        log.error("epoch.restored", why=why)


@worker_init.connect  # type: ignore[untyped-decorator]
def check_epoch_at_start(**kwargs: Any) -> None:
    """Check before the worker takes a message. Closes the connection, because the
    worker's children must not inherit it."""
    check_epoch()
    connections.close_all()


class TaskChecks:
    """Checks in a process of a worker, at most every `CHECK_INTERVAL_S` seconds, before
    a task: a host that has no web process must find its note, too."""

    checked_at: float | None = None

    def check(self, **kwargs: Any) -> None:
        now = time.monotonic()
        if self.checked_at is None or now - self.checked_at > CHECK_INTERVAL_S:
            self.checked_at = now
            check_epoch()


if failover.is_enabled():
    _task_checks = TaskChecks()
    task_prerun.connect(_task_checks.check)


class PeriodicChecks:
    """Runs checks every `CHECK_INTERVAL_S` seconds in the web process, in one thread
    that keeps one database connection."""

    def __init__(self, *looks: CheckFunction) -> None:
        self.looks = looks
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="epoch")
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to check; needs a running event loop."""
        self.task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task
        self.thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            for look in self.looks:
                await loop.run_in_executor(self.thread, look)
            await asyncio.sleep(CHECK_INTERVAL_S)
