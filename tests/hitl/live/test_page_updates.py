"""Counting once for everybody, without a database: what pages are told, and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError

from desk.components.badges import Badges, BadgeUpdate
from desk.live.subscription import Viewer
from hitl.live import page_updates
from hitl.live.listen import Hub
from hitl.live.page_updates import CountResult, OpenPage, PageUpdates
from tests import loops

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
RITA, TOM = 1, 2


@dataclass
class Counter:
    """Stands for the query: what it would find, and how often it was asked."""

    waiting: dict[int, int] = field(default_factory=lambda: {RITA: 1, TOM: 5})
    opened: list[datetime] = field(default_factory=list)
    asked: int = 0
    fails: int = 0

    def __call__(self, viewers: Collection[Viewer]) -> CountResult:
        self.asked += 1
        if self.fails:
            self.fails -= 1
            raise OperationalError
        found = {
            v.person: BadgeUpdate(Badges(self.waiting[v.person]), self.opened)
            for v in viewers
        }
        return found, str(self.asked)


Story = Callable[[Hub, Counter, Callable[..., OpenPage]], Awaitable[None]]


def play(story: Story) -> None:
    async def run() -> None:
        hub, counter = Hub(""), Counter()
        updates = PageUpdates(hub, counter)
        updates.start()

        def look(person: int, **about: Any) -> OpenPage:
            page = OpenPage()
            updates._pages.add(page)
            page.admit(Viewer(person, f"person:{person}", "s", **about))
            return page

        await story(hub, counter, look)
        await updates.stop()

    loops.run(run())


async def told(page: OpenPage) -> dict[str, Any]:
    """The next event for this page."""
    while not page.event:
        await asyncio.sleep(0.002)
    _, data = page.take().decode().strip().split("\n")
    found: dict[str, Any] = json.loads(data.removeprefix("data: "))
    return found


def test_a_change_is_counted_once_for_all() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        pages = [look(RITA) for _ in range(50)] + [look(TOM) for _ in range(50)]
        hub._tell("p-1")
        found = [(await told(page))["badges"]["queue"] for page in pages]
        assert found == [1] * 50 + [5] * 50
        assert counter.asked == 1

    play(story)


def test_many_changes_at_once_are_counted_together() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        page = look(RITA)
        for number in range(500):
            hub._tell(f"p-{number}")
            if number % 100 == 0:
                await asyncio.sleep(0)
        await told(page)
        await _fresh(hub, look(TOM))
        assert counter.asked <= 4

    play(story)


def test_a_page_that_knows_it_already_hears_nothing() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        page = look(RITA)
        hub._tell("p-1")
        await told(page)
        await _fresh(hub, look(TOM))  # everybody is told at once
        assert counter.asked == 2
        assert page.event == b""

    play(story)


def test_a_page_is_told_of_its_own_requests_only() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        mine = look(RITA, about={"p-1": "r-1", "r-1": "r-1"})
        other = look(RITA, about={"p-2": "r-2"})
        hub._tell("p-1")
        assert (await told(mine))["changed"] == ["r-1"]
        assert "changed" not in await told(other)
        hub._tell("stops")
        assert (await told(mine))["changed"] == ["r-1"]
        assert (await told(other))["changed"] == ["r-2"]

    play(story)


def test_each_page_counts_from_its_own_moment() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        counter.opened = [NOON + timedelta(minutes=n) for n in range(4)]
        early, late = look(RITA, since=NOON), look(RITA, since=counter.opened[2])
        hub._tell("p-1")
        assert ((await told(early))["new"], (await told(late))["new"]) == (3, 1)
        assert "new" not in await _fresh(hub, look(RITA))

    play(story)


async def _fresh(hub: Hub, page: OpenPage) -> dict[str, Any]:
    hub._tell("p-9")
    return await told(page)


def test_a_lost_connection_makes_every_page_look() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        page = look(RITA, about={"p-1": "r-1"})
        hub._tell(None)
        assert (await told(page))["changed"] == ["r-1"]

    play(story)


def test_a_count_that_failed_is_made_again() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        counter.fails = 1
        page = look(RITA, about={"p-1": "r-1"})
        hub._tell("p-1")
        while counter.fails:
            await asyncio.sleep(0.002)
        assert page.event == b""
        hub._tell("p-2")
        assert (await told(page))["changed"] == ["r-1"]

    play(story)


def test_nobody_looks_and_nothing_is_counted() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        hub._tell("p-1")
        for _ in range(20):  # a count would begin in the next turns of the loop
            await asyncio.sleep(0)
        await _fresh(hub, look(RITA))
        assert counter.asked == 1

    play(story)


def test_what_happens_while_it_is_found_out_who_looks_is_not_missed() -> None:
    page = OpenPage()
    page.hear({"p-1", "p-7"})
    assert page.admit(Viewer(RITA, "person:1", "s", about={"p-1": "r-1"}))
    assert page.changed == {"r-1"}
    assert not OpenPage().admit(Viewer(RITA, "person:1", "s"))


def test_a_change_between_a_beat_and_its_count_is_not_lost() -> None:
    """A stream takes what waits at each beat, also while a change is being counted."""
    page = OpenPage()
    page.admit(Viewer(RITA, "person:1", "s", about={"p-1": "r-1"}))
    news = BadgeUpdate(Badges(1), [])
    page.tell(news, "1")
    page.hear({"p-1"})
    assert b"r-1" not in page.take()
    page.tell(news, "2")
    assert b"r-1" in page.take()
    page.tell(news, "3")
    assert page.take() == b""


def test_a_change_of_access_doubts_the_pages_of_that_person_alone() -> None:
    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        mine, other = look(RITA), look(TOM)
        woken = list[int]()
        mine.wake = lambda: woken.append(RITA)
        other.wake = lambda: woken.append(TOM)
        hub._tell("person:1")  # before anything is counted
        assert mine.doubted
        assert not other.doubted
        assert woken == [RITA]
        hub._tell("p-1")
        assert not other.doubted

    play(story)


def test_a_change_of_access_while_it_is_found_out_who_looks_is_not_missed() -> None:
    page, other = OpenPage(), OpenPage()
    for one in (page, other):
        one.hear_at_once("person:1")
        assert not one.doubted
    page.admit(Viewer(RITA, "person:1", "s"))
    other.admit(Viewer(TOM, "person:2", "s"))
    assert page.doubted
    assert not other.doubted


def test_after_lost_notifications_everybody_is_doubted_bit_by_bit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_updates, "SPREAD_S", 0.01)

    async def story(hub: Hub, counter: Counter, look: Callable[..., OpenPage]) -> None:
        pages = [look(RITA) for _ in range(50)]
        hub._tell(None)
        assert not any(page.doubted for page in pages), "not all at the same time"
        while not all(page.doubted for page in pages):
            await asyncio.sleep(0.002)

    play(story)
