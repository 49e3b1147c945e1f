"""Connections that are held open beside a measurement, on an event loop in a thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from hitl.environment import LOOPBACK

from . import http_load

PATIENCE_S = 60.0


class ConnectionHolder:
    """Runs coroutines in its thread until it is closed."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin one more of these."""
        self.loop.call_soon_threadsafe(
            lambda: self._tasks.append(self.loop.create_task(work()))
        )

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._cancel(), self.loop).result(PATIENCE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@contextmanager
def hold_connections() -> Iterator[ConnectionHolder]:
    held = ConnectionHolder()
    try:
        yield held
    finally:
        held.close()


@asynccontextmanager
async def open_request(
    port: int, path: str, headers: dict[str, str]
) -> AsyncIterator[asyncio.StreamReader]:
    """One GET whose answer is still to be read."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    try:
        writer.write(http_load.build_request("GET", path, headers))
        yield reader
    finally:
        writer.close()


def wait_until(done: Callable[[], bool], what: str) -> None:
    """Raises TimeoutError."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.002)
