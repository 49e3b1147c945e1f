"""Counts over several processes: by themselves on a real broker, and as the limits of
two real web processes."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
import redis
from django.conf import settings
from django.test import Client

from agents import keys
from hitl.live import shared_counts
from hitl.live.event_stream import MOST_EACH
from hitl.live.long_poll import MAX_EACH
from hitl.live.shared_counts import OwnCounts, SharedCounts, take_place
from tests import loops
from tests.conftest import Gate
from tests.factories import propose
from tests.security.world import BACKEND
from tests.stack import Stack

Story = Callable[[SharedCounts, SharedCounts], Coroutine[Any, Any, None]]
AWAY = "unix:///nowhere/valkey.sock"


def play(story: Story, *, url: str = "") -> None:
    """Two processes' counts in one event loop."""

    async def run() -> None:
        both = [SharedCounts(url or settings.COUNTERSEAL.redis_url) for _ in range(2)]
        try:
            await story(*both)
        finally:
            for one in both:
                await one.close()

    loops.run(run())


async def enter(counts: OwnCounts, most: int = 3, seconds: float = 60.0) -> bool:
    entry = uuid.uuid4().hex
    return await counts.enter("waits:a", entry, most=most, seconds=seconds)


@pytest.mark.usefixtures("broker")
def test_two_processes_share_the_places_of_a_key() -> None:
    async def story(one: SharedCounts, two: SharedCounts) -> None:
        async with take_place(one, "waits:a", most=3, seconds=60) as place:
            assert place.fits
            said = [await enter(counts) for counts in (two, one, two, one)]
            assert said == [True, True, False, False]
            assert await two.enter("waits:b", "e", most=3, seconds=60)
        assert await enter(two), "who has left makes room"
        assert not await enter(one)

    play(story)


@pytest.mark.usefixtures("broker")
def test_the_last_places_go_to_exactly_so_many() -> None:
    async def story(one: SharedCounts, two: SharedCounts) -> None:
        asked = [enter(counts, most=5) for _ in range(20) for counts in (one, two)]
        assert Counter(await asyncio.gather(*asked)) == {True: 5, False: 35}

    play(story)


@pytest.mark.usefixtures("broker")
def test_an_entry_of_a_process_that_died_ends_by_itself() -> None:
    async def story(one: SharedCounts, two: SharedCounts) -> None:
        assert await enter(one, most=1, seconds=0.2)
        assert not await enter(two, most=1)
        while not await enter(two, most=1):
            await asyncio.sleep(0.02)

    play(story)


def test_what_is_renewed_stays(broker: redis.Redis) -> None:
    async def story(one: SharedCounts, two: SharedCounts) -> None:
        async with take_place(one, "waits:a", most=1, seconds=0.2) as place:
            place.seconds = 60
            await place.renew()
            name = f"{shared_counts.PREFIX}waits:a"
            ends = broker.zrange(name, 0, -1, withscores=True)
            now = cast(Any, broker.time())
            assert [end - now[0] > 50 for _, end in cast(Any, ends)] == [True]
            assert not await enter(two, most=1)

    play(story)


@pytest.mark.usefixtures("broker")
def test_a_place_may_move_to_another_key() -> None:
    async def story(one: SharedCounts, two: SharedCounts) -> None:
        async with take_place(one, "waits:b", most=1, seconds=60) as place:
            await place.move("waits:a")
            assert place.fits
            assert not await enter(two, most=1)
            assert await two.enter("waits:b", "e", most=1, seconds=60)
        assert await enter(two, most=1)

    play(story)


def test_without_its_broker_a_process_counts_alone() -> None:
    async def story(one: SharedCounts, two: SharedCounts) -> None:
        said = [await enter(one, most=2) for _ in range(3)]
        assert said == [True, True, False]
        assert await enter(two, most=2)

    play(story, url=AWAY)


def test_a_broker_that_lost_its_data_lifts_no_limit_of_a_process(
    broker: redis.Redis,
) -> None:
    async def story(one: SharedCounts, two: SharedCounts) -> None:
        assert [await enter(one, most=2) for _ in range(2)] == [True, True]
        broker.flushdb()
        assert not await enter(one, most=2)

    play(story)


def test_the_memory_of_a_process_holds_only_so_many_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shared_counts, "MOST_KEYS", 10)

    async def story() -> int:
        counts = OwnCounts()
        for number in range(50):
            await counts.enter(f"failures:{number}", "e", most=1, seconds=60)
        return len(counts._ends)

    assert loops.run(story()) == 10


FAILURES = 6


@pytest.fixture(scope="module")
def pair(_stack: Stack) -> Iterator[list[Stack]]:
    """Two web processes of one installation, which no other test has called."""
    few = {"FAILURES_PER_MINUTE": str(FAILURES)}
    both = [Stack(_stack.state, few) for _ in range(2)]
    yield both
    for one in both:
        one.kill_web()


@pytest.fixture
def webs(pair: list[Stack], live: Stack) -> list[str]:
    """Their addresses."""
    for one in pair:
        one.start_web()
    return [one.base_url for one in pair]


def try_key(base: str, number: int) -> int:
    """The status of a call with a key that nobody has."""
    return httpx2.post(
        f"{base}/api/v1/proposals",
        headers={"Authorization": f"Bearer cs_made_up_{number}"},
        json={},
        trust_env=False,
    ).status_code


@pytest.mark.servers
def test_an_address_fails_so_often_over_two_processes(webs: list[str]) -> None:
    said = [try_key(webs[number % 2], number) for number in range(FAILURES + 4)]
    assert said == [401] * FAILURES + [429] * 4


ROOM = 4  # places that the test leaves to the two processes


async def fill_places(key: str, most: int) -> SharedCounts:
    """Take all places of a key but ROOM, as a third process would."""
    counts = SharedCounts(settings.COUNTERSEAL.redis_url)
    for number in range(most - ROOM):
        assert await counts.enter(key, f"e-{number}", most=most, seconds=100)
    return counts


@asynccontextmanager
async def open_many(
    bases: list[str], path: str, headers: dict[str, str]
) -> AsyncIterator[list[asyncio.Task[int]]]:
    """Twice ROOM requests at once, in turn at each address: the status of each, once
    its headers are here. They stay open as long as the block."""
    async with (
        httpx2.AsyncClient(timeout=90, trust_env=False, headers=headers) as client,
        AsyncExitStack() as stack,
    ):

        async def ask(base: str) -> int:
            stream = client.stream("GET", base + path)
            return (await stack.enter_async_context(stream)).status_code

        asked = [ask(bases[turn % len(bases)]) for turn in range(2 * ROOM)]
        yield [asyncio.create_task(one) for one in asked]


@pytest.mark.servers
def test_the_waits_of_an_agent_count_over_two_processes(
    webs: list[str], gate: Gate
) -> None:
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    path = f"/api/v1/proposals/{propose(gate.agent).pk}"
    headers = {"Authorization": f"Bearer {key}"}
    for base in webs:  # each process learns the key
        assert httpx2.get(base + path, headers=headers, trust_env=False).is_success

    async def story() -> None:
        counts = await fill_places(f"waits:agent:{gate.agent.slug}", MAX_EACH)
        async with open_many(webs, f"{path}?wait=60", headers) as asked:
            while sum(task.done() for task in asked) < ROOM:
                await asyncio.sleep(0.05)
            refused = [task.result() for task in asked if task.done()]
            assert refused == [429] * ROOM
            async with httpx2.AsyncClient(timeout=60, trust_env=False) as client:
                address = f"{webs[0]}{path}/withdraw"
                done = await client.post(address, headers=headers, json={})
            assert done.is_success
            said = Counter(await asyncio.gather(*asked))
            assert said == {200: ROOM, 429: ROOM}
        await counts.close()

    loops.run(story(), within=120)


@pytest.mark.servers
def test_the_streams_of_a_person_count_over_two_processes(
    webs: list[str], gate: Gate
) -> None:
    browser = Client()
    browser.force_login(gate.rita, BACKEND)
    cookies = "; ".join(f"{c.key}={c.value}" for c in browser.cookies.values())

    async def story() -> None:
        counts = await fill_places(f"streams:{gate.rita.pk}", MOST_EACH)
        async with open_many(webs, "/events/", {"Cookie": cookies}) as asked:
            said = Counter(await asyncio.gather(*asked))
            assert said == {200: ROOM, 429: ROOM}
        await counts.close()

    loops.run(story(), within=120)
