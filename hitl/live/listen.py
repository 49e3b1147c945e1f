"""One LISTEN connection per process, shared by everything that waits for changes.

A wake-up says only "look again". It may come without a change but never too late:
subscribe before reading the state, and no change is missed. After the connection was
lost all subscribers are woken, because what changed meanwhile is unknown.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import psycopg
import structlog
from psycopg.conninfo import make_conninfo

from hitl import connections
from journal.notify import CHANNEL

# Seconds between health checks of a quiet connection.
PULSE_S = 15.0
BACKOFF_S = (0.1, 0.3, 1.0, 2.0)

log = structlog.get_logger(__name__)


class Subscription:
    """Waits for some subjects. Until `narrow` names them, remembers all subjects
    heard."""

    def __init__(self) -> None:
        self.subjects: frozenset[str] | None = None
        self._heard: set[str] = set()
        self._event = asyncio.Event()

    def hear(self, subject: str | None) -> None:
        """Record a change of `subject`; None means that anything may have changed."""
        if subject is None or subject in (self.subjects or ()):
            self._event.set()
        elif self.subjects is None:
            self._heard.add(subject)

    def narrow(self, *subjects: str) -> None:
        """Wait for these subjects only. If one was heard before, the next wait returns
        at once."""
        self.subjects = frozenset(subjects)
        if self.subjects & self._heard:
            self._event.set()
        self._heard.clear()

    async def wait(self) -> None:
        """Wait for a change since the last wait."""
        await self._event.wait()
        self._event.clear()


class Hub:
    """Distributes the database's notifications to the subscriptions of this process."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._subscriptions: set[Subscription] = set()
        self._followers: list[Callable[[str | None], None]] = []
        self._task: asyncio.Task[None] | None = None
        self.stopping = False

    def start(self) -> None:
        """Begin to listen; may be called again. Needs a running event loop."""
        if self._task is None:
            self._task = asyncio.create_task(self._listen_for_ever())

    def end_waits(self) -> None:
        """End all waits now and later, because the process is about to stop."""
        self.stopping = True
        self._tell(None)

    async def stop(self) -> None:
        self.end_waits()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    @contextlib.contextmanager
    def subscribe(self) -> Iterator[Subscription]:
        """Open this before reading the state that the subscription is about."""
        subscription = Subscription()
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    def follow(self, hear: Callable[[str | None], None]) -> None:
        """Call `hear` with every subject, on the event loop; None means that anything
        may have changed."""
        self._followers.append(hear)

    def _tell(self, subject: str | None) -> None:
        for subscription in self._subscriptions:
            subscription.hear(subject)
        for hear in self._followers:
            hear(subject)

    async def _listen_for_ever(self) -> None:
        failures = 0
        while True:
            try:
                async with await self._connect() as connection:
                    failures = 0
                    self._tell(None)
                    await self._listen(connection)
            except psycopg.Error as error:
                log.warning("listen_lost", error=type(error).__name__)
            delay = BACKOFF_S[min(failures, len(BACKOFF_S) - 1)]
            failures += 1
            await asyncio.sleep(delay)

    async def _connect(self) -> psycopg.AsyncConnection[tuple[object, ...]]:
        conninfo = make_conninfo(
            self._conninfo,
            connect_timeout=connections.DATABASE_CONNECT_TIMEOUT_S,
            application_name="counterseal hub",
            **connections.CLIENT_OPTIONS,
        )
        connection = await psycopg.AsyncConnection.connect(conninfo, autocommit=True)
        await connection.execute(f"LISTEN {CHANNEL}")
        return connection

    async def _listen(
        self, connection: psycopg.AsyncConnection[tuple[object, ...]]
    ) -> None:
        while True:
            async for notice in connection.notifies(timeout=PULSE_S):
                self._tell(notice.payload)
            await connection.execute("SELECT 1")
