"""Looking, as a process starts and every few seconds in the web process, whether the
database is still the one that we know; workers look by a sweep."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery.signals import worker_init
from django.db import close_old_connections, connections
from structlog.stdlib import get_logger

from reviews import recovery

EVERY_S = 5.0

log = get_logger(__name__)


Look = Callable[[], None]


def look() -> None:
    """Once. A database that cannot be asked runs nothing either."""
    close_old_connections()
    try:
        why = recovery.watch()
    except Exception as error:  # or nobody would look any more
        log.warning("epoch.not_looked", error=type(error).__name__)
        return
    if why:
        log.error("epoch.restored", why=why)


@worker_init.connect  # type: ignore[untyped-decorator]
def look_first(**kwargs: Any) -> None:
    """Before a worker takes anything. Its children must not inherit the connection."""
    look()
    connections.close_all()


class Watch:
    """The web process's own looks, in one thread with one connection."""

    def __init__(self, *looks: Look) -> None:
        self.looks = looks
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="epoch")
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
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
            for one in self.looks:
                await loop.run_in_executor(self.thread, one)
            await asyncio.sleep(EVERY_S)
