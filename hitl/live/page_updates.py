"""What is new, counted once for all open pages of this process.

News of the database comes by the hub. It is counted in one thread, which keeps one
connection; a page that is slow misses numbers in between and never the last.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import structlog
from django.db import close_old_connections

from reviews.desk.components.badges import News
from reviews.desk.live import subscription
from reviews.desk.live.subscription import Viewer

from .listen import Hub

# Seconds. Changes that come closer together than this are counted together.
TOGETHER_S = 0.015
# Numbers also change with time alone: a deadline comes near.
PULSE_S = 15.0

Counted = tuple[dict[int, News], str]  # by person, and the number of this state
Count = Callable[[Collection[Viewer]], Counted]
log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Page:
    """One open page: what it knows, and the newest that it is to be told."""

    viewer: Viewer | None = None  # until it is known who looks
    told: dict[str, Any] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    heard: set[str] = field(default_factory=set)  # before it was known
    missed: bool = False
    event: bytes = b""
    wake: Callable[[], None] = lambda: None

    def admit(self, viewer: Viewer) -> bool:
        """From now on it is known what this page wants to hear; whether it missed
        news while that was found out."""
        self.viewer = viewer
        self.changed |= viewer.concerned(None if self.missed else self.heard)
        return self.missed or bool(self.heard)

    def hear(self, subjects: set[str] | None) -> None:
        """What changed; None is everything."""
        if self.viewer is not None:
            self.changed |= self.viewer.concerned(subjects)
        elif subjects is None:
            self.missed = True
        else:
            self.heard |= subjects

    def tell(self, news: News, number: str) -> None:
        """Take over the state, unless the page knows it already."""
        if self.viewer is None:
            return
        told = subscription.said(self.viewer, news)
        if told == self.told and not self.changed:
            return
        self.told = told
        said = subscription.said(self.viewer, news, self.changed)
        self.event = subscription.event(said, number).encode()
        self.wake()

    def take(self) -> bytes:
        """What is to be sent now; nothing twice."""
        event, self.event = self.event, b""
        self.changed.clear()
        return event


def count(viewers: Collection[Viewer]) -> Counted:
    """Everybody's numbers, and the moment that they are of or later than."""
    close_old_connections()
    number = subscription.number()
    return subscription.states(viewers), number


class Newsroom:
    """The open pages, and the one task that counts for them."""

    def __init__(self, hub: Hub, count: Count = count) -> None:
        self._hub, self._count = hub, count
        self._pages: set[Page] = set()
        self._subjects: set[str] | None = set()
        self._news = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="newsroom")
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
    def page(self) -> Iterator[Page]:
        """Open it before asking for the state: what happens meanwhile is heard."""
        page = Page()
        self._pages.add(page)
        try:
            yield page
        finally:
            self._pages.discard(page)

    def count_again(self) -> None:
        """Some page does not know the newest."""
        self._news.set()

    def _hear(self, subject: str | None) -> None:
        if self._hub.stopping:
            for page in self._pages:
                page.wake()
        elif not self._pages:
            return
        elif subject is None:
            self._subjects = None
        elif self._subjects is not None:
            self._subjects.add(subject)
        self._news.set()

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
            await asyncio.sleep(TOGETHER_S)

    async def _tell(self) -> None:
        viewers = [page.viewer for page in self._pages if page.viewer is not None]
        if not viewers:
            return
        loop = asyncio.get_running_loop()
        try:
            found, number = await loop.run_in_executor(
                self._thread, self._count, viewers
            )
        except Exception as error:  # the next news or the pulse counts again
            log.warning("count_failed", error=type(error).__name__)
            return
        for page in self._pages:
            news = found.get(page.viewer.person) if page.viewer else None
            if news is not None:
                page.tell(news, number)
