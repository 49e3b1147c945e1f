"""Counts what is new, once for all open pages of this process, and tells the pages.

The hub reports changes in the database. One thread with one database connection counts
them. A slow page may miss intermediate numbers but never the last.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import close_old_connections

from desk.components.badges import BadgeUpdate
from desk.live import subscription
from desk.live.subscription import Viewer
from journal.notify import name_caller

from .listen import Hub

# Seconds. Changes closer together than this are counted together.
COALESCE_S = 0.015
# Seconds. Some numbers change with time alone, for example when a deadline comes near.
PULSE_S = 15.0
# Seconds over which the viewers of all pages are checked again, after notifications may
# have been lost.
SPREAD_S = 10.0
PEOPLE = name_caller("person", "")

CountResult = tuple[
    dict[int, BadgeUpdate], str
]  # counts by person, and the state's number
CountFunction = Callable[[Collection[Viewer]], CountResult]
log = structlog.get_logger(__name__)


@dataclass(eq=False)
class OpenPage:
    """One open page: the state it knows, and the newest event for it. What changes
    while an event waits to be sent belongs to the next one."""

    viewer: Viewer | None = None  # until the view has identified the viewer
    known_state: dict[str, Any] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)  # in no event yet
    announced: set[str] = field(default_factory=set)  # in the event that waits
    heard: set[str] = field(default_factory=set)  # before the viewer was known
    missed: bool = False
    doubted: bool = False  # whether the viewer may still see the page
    event: bytes = b""
    wake: Callable[[], None] = lambda: None

    def admit(self, viewer: Viewer) -> bool:
        """Set the page's viewer. Returns whether changes occurred before the viewer was
        known."""
        self.viewer = viewer
        self.doubted = self.missed or viewer.caller in self.heard
        self.changed |= viewer.concerned(None if self.missed else self.heard)
        return self.missed or bool(self.heard)

    def hear(self, subjects: set[str] | None) -> None:
        """Record changed subjects; None means that anything may have changed."""
        if self.viewer is not None:
            self.changed |= self.viewer.concerned(subjects)
        elif subjects is None:
            self.missed = True
        else:
            self.heard |= subjects

    def hear_at_once(self, subject: str) -> None:
        """Doubt the viewer if it is their access that changed. It does not wait for the
        next count."""
        if self.viewer is None:
            self.heard.add(subject)
        elif self.viewer.caller == subject:
            self.doubt()

    def doubt(self) -> None:
        """Have the viewer's access checked again now."""
        self.doubted = True
        self.wake()

    def tell(self, news: BadgeUpdate, number: str) -> None:
        """Prepare an event with this state, unless the page already knows it."""
        if self.viewer is None:
            return
        state = subscription.build_message(self.viewer, news)
        if state == self.known_state and not self.changed:
            return
        self.known_state = state
        self.announced |= self.changed
        self.changed = set()
        message = subscription.build_message(self.viewer, news, self.announced)
        self.event = subscription.format_event(message, number).encode()
        self.wake()

    def take(self) -> bytes:
        """The event to send now, or empty bytes; nothing is sent twice."""
        event, self.event = self.event, b""
        self.announced = set()
        return event


def count_updates(viewers: Collection[Viewer]) -> CountResult:
    """Count for all viewers. Returns the counts by person, and the number of a state
    that is not newer than they are."""
    close_old_connections()
    number = subscription.load_event_number()
    return subscription.load_states(viewers), number


class PageUpdates:
    """The open pages, and the task that counts for all of them."""

    def __init__(self, hub: Hub, count: CountFunction = count_updates) -> None:
        self._hub, self._count = hub, count
        self._pages: set[OpenPage] = set()
        self._subjects: set[str] | None = set()
        self._news = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="page-updates")
        self._task: asyncio.Task[None] | None = None
        hub.follow(self._hear)

    def __len__(self) -> int:
        return len(self._pages)

    def start(self) -> None:
        """Begin to count; needs a running event loop."""
        if self._task is None:
            self._task = asyncio.create_task(self._work())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self._thread.shutdown(wait=False, cancel_futures=True)

    @contextlib.contextmanager
    def page(self) -> Iterator[OpenPage]:
        """Register a page. Open this before reading its state: then changes made
        meanwhile are recorded."""
        page = OpenPage()
        self._pages.add(page)
        try:
            yield page
        finally:
            self._pages.discard(page)

    def count_again(self) -> None:
        """Count soon, because some page lacks the newest state."""
        self._news.set()

    def _hear(self, subject: str | None) -> None:
        if self._hub.stopping:
            for page in self._pages:
                page.wake()
        elif not self._pages:
            return
        elif subject is None:
            self._subjects = None
            self._doubt_all()
        else:
            if subject.startswith(PEOPLE):
                for page in self._pages:
                    page.hear_at_once(subject)
            if self._subjects is not None:
                self._subjects.add(subject)
        self._news.set()

    def _doubt_all(self) -> None:
        loop = asyncio.get_running_loop()
        for page in self._pages:
            delay = random.uniform(0, SPREAD_S)  # noqa: S311 no secret
            loop.call_later(delay, page.doubt)

    async def _work(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PULSE_S):
                    await self._news.wait()
            self._news.clear()
            subjects, self._subjects = self._subjects, set()
            for page in self._pages:
                page.hear(subjects)
            await self._tell()
            await asyncio.sleep(COALESCE_S)

    async def _tell(self) -> None:
        viewers = [page.viewer for page in self._pages if page.viewer is not None]
        if not viewers:
            return
        loop = asyncio.get_running_loop()
        try:
            counts, number = await loop.run_in_executor(
                self._thread, self._count, viewers
            )
        except Exception as error:  # the next change or pulse counts again
            log.warning("count_failed", error=type(error).__name__)
            return
        for page in self._pages:
            news = counts.get(page.viewer.person) if page.viewer else None
            if news is not None:
                page.tell(news, number)
