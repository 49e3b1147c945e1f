"""Streams in a real uvicorn: what is told, what is held, and that it stops."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from django.test import Client

from agents import keys
from hitl import asgi
from hitl.live.event_stream import MOST_EACH
from policies.choices import Role
from policies.models import Person
from tests import factories, loops
from tests.conftest import Gate
from tests.security.world import BACKEND
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.servers

OPEN = 100  # streams at once: many more than threads or connections
# Connections: the threads that answer, the one that counts what is new and the one that
# watches the epoch. The hub's, which listens, is counted apart.
FEW = asgi.THREADS + 2
NAMED = "application_name=streams"


def cookie(person: Person) -> dict[str, str]:
    """A session of this person, as a browser would send it."""
    client = Client()
    client.force_login(person, BACKEND)
    return {name: morsel.value for name, morsel in client.cookies.items()}


@dataclass
class Ear:
    """One open stream."""

    response: httpx2.Response
    lines: AsyncIterator[str]

    async def event(self) -> dict[str, Any]:
        """The next event, past beats and the time to come back."""
        async with asyncio.timeout(10):
            async for line in self.lines:
                if line.startswith("data: "):
                    found: dict[str, Any] = json.loads(line.removeprefix("data: "))
                    return found
        raise EOFError

    async def hears(self, new: int) -> dict[str, Any]:
        """The event that says so many are new: others before it may come or be left
        out, and what a page knew already may come again."""
        while (event := await self.event())["new"] != new:
            pass
        return event

    async def end(self) -> None:
        async for _ in self.lines:
            pass


@asynccontextmanager
async def ear(
    base: str, cookies: dict[str, str], query: str = ""
) -> AsyncIterator[Ear]:
    async with (
        httpx2.AsyncClient(trust_env=False, timeout=60, cookies=cookies) as client,
        client.stream("GET", f"{base}/events/{query}") as response,
    ):
        yield Ear(response, response.aiter_lines())


@dataclass
class Agent:
    """Speaks HTTP to one web process."""

    base: str
    key: str
    count: int = 0

    async def post(self, path: str, body: Any) -> Any:
        self.count += 1
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Idempotency-Key": f"k-{self.count}",
        }
        async with httpx2.AsyncClient(trust_env=False, timeout=20) as client:
            address = f"{self.base}/api/v1{path}"
            answer = await client.post(address, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    async def propose(self) -> Any:
        args = {"customer": f"C-{self.count}", "amount": "40.00", "currency": "USD"}
        body = {"thread": f"t-{self.count}", "tool": "pay", "args": args}
        return await self.post("/proposals", {**body, "rationale": "asked"})


@pytest.fixture
def agent(live: Stack, gate: Gate) -> Agent:
    """One whose server hears the database: when that begins, every page is told."""
    wait_until(partial(listens, live), 10)
    return Agent(live.base_url, keys.issue_key(agent=gate.agent, by=gate.owen))


def listens(live: Stack) -> bool:
    with psycopg.connect(live.environ["DATABASE_URL"]) as connection:
        found = connection.execute(
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND "
            "application_name = 'counterseal hub' AND state = 'idle' "
            "AND query ~ '^(LISTEN|SELECT 1)'"
        )
        return found.fetchone() is not None


SINCE = "?since=2026-01-01T00:00:00%2B00:00"


def test_a_page_hears_of_a_proposal(live: Stack, gate: Gate, agent: Agent) -> None:
    cookies = cookie(gate.rita)

    async def story() -> None:
        async with ear(live.base_url, cookies, SINCE) as mine:
            headers = mine.response.headers
            assert headers["content-type"].startswith("text/event-stream")
            assert headers["x-accel-buffering"] == "no"
            assert "no-store" in headers["cache-control"]
            assert "default-src 'none'" in headers["content-security-policy"]
            assert "counterseal-stream" not in headers
            first = await mine.event()
            assert (first["badges"]["queue"], first["new"]) == (0, 0)
            await agent.propose()
            assert (await mine.hears(1))["badges"]["queue"] == 1

    loops.run(story(), within=60)


def test_a_page_about_a_request_hears_of_its_own(
    live: Stack, gate: Gate, agent: Agent
) -> None:
    cookies = cookie(gate.tom)

    async def story() -> None:
        mine, other = await agent.propose(), await agent.propose()
        about = mine["request"]["id"]
        async with ear(live.base_url, cookies, f"?about={about}") as page:
            await page.event()
            await agent.post(f"/proposals/{other['id']}/withdraw", {})
            assert "changed" not in await page.event()
            await agent.post(f"/proposals/{mine['id']}/withdraw", {})
            assert (await page.event())["changed"] == [about]

    loops.run(story(), within=60)


def test_what_one_may_not_see_is_not_told(
    live: Stack, gate: Gate, agent: Agent
) -> None:
    stranger = cookie(factories.person("zoe", Role.REVIEWER))  # of no queue

    async def story() -> None:
        mine = await agent.propose()
        about = mine["request"]["id"]
        async with ear(live.base_url, stranger, f"?about={about}&about=r-0") as page:
            said = await page.event()
            assert set(said) == {"badges"}
            assert not any(said["badges"].values())
            await agent.post(f"/proposals/{mine['id']}/withdraw", {})
            assert "changed" not in await page.event()

    loops.run(story(), within=60)


def test_whoever_comes_back_is_told_the_state_as_it_is(
    live: Stack, gate: Gate, agent: Agent
) -> None:
    cookies = cookie(gate.rita)

    async def first(number: str) -> tuple[dict[str, Any], int]:
        headers = {"Last-Event-ID": number}
        address = f"{live.base_url}/events/"
        async with (
            httpx2.AsyncClient(trust_env=False, cookies=cookies) as client,
            client.stream("GET", address, headers=headers) as response,
        ):
            async for text in response.aiter_text():
                found = re.search(r"id: (\d+)\ndata: (.*)\n\n", text)
                assert found
                return json.loads(found[2]), int(found[1])
        raise EOFError

    async def story() -> None:
        made = await agent.propose()
        told, number = await first("")
        assert told["badges"]["queue"] == 1
        await agent.post(f"/proposals/{made['id']}/withdraw", {})
        later, second = await first(str(number))
        assert later["badges"]["queue"] == 0
        assert second > number

    loops.run(story(), within=60)


def test_one_person_has_so_many_streams_and_leaves_room_for_others(
    live: Stack, gate: Gate, agent: Agent
) -> None:
    mine, other = cookie(gate.rita), cookie(gate.tom)

    async def status(cookies: dict[str, str]) -> int:
        async with ear(live.base_url, cookies) as one:
            return one.response.status_code

    async def again() -> None:
        while await status(mine) == 429:
            await asyncio.sleep(0.05)

    async def story() -> None:
        async with AsyncExitStack() as stack:
            for _ in range(MOST_EACH):
                one = await stack.enter_async_context(ear(live.base_url, mine))
                assert one.response.status_code == 200
            async with ear(live.base_url, mine) as more:
                assert more.response.status_code == 429
                assert more.response.headers["retry-after"]
                said = json.loads(await more.response.aread())
                assert said["code"] == "too_many"
            assert await status(other) == 200
        await again()  # as soon as the server knows that they are closed

    loops.run(story(), within=120)


def test_it_is_for_people_who_signed_in(live: Stack, gate: Gate, agent: Agent) -> None:
    address = f"{live.base_url}/events/"
    answer = httpx2.get(address, trust_env=False)
    assert answer.status_code == 401
    assert answer.json()["code"] == "session"
    assert "location" not in answer.headers
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    bearer = {"Authorization": f"Bearer {agent.key}"}
    assert httpx2.get(address, headers=bearer, trust_env=False).status_code == 401
    with httpx2.Client(trust_env=False, cookies=cookie(gate.rita)) as signed_in:
        assert signed_in.post(address).status_code in {403, 405}


async def hold(
    base: str, cookies: list[dict[str, str]], stack: AsyncExitStack
) -> list[Ear]:
    """Many streams, all of them open."""
    ears = [
        await stack.enter_async_context(ear(base, cookies[n % len(cookies)], SINCE))
        for n in range(OPEN)
    ]
    for one in ears:
        await one.event()
    return ears


def crowd(gate: Gate) -> list[dict[str, str]]:
    """Sessions of several people: nobody may hold a hundred."""
    return [cookie(gate.people[name]) for name in ("rita", "tom", "sue", "sam")]


@pytest.fixture
def named(live: Stack) -> Iterator[Stack]:
    """A second web process, to be stopped. Its connections can be told from those of
    others that run in this database."""
    url = live.environ["DATABASE_URL"]
    own = Stack(
        live.state, {"DATABASE_URL": f"{url}{'&' if '?' in url else '?'}{NAMED}"}
    )
    own.start_web()
    yield own
    own.kill_web()


def test_a_hundred_streams_hold_no_thread_and_no_connection_and_end_at_sigterm(
    named: Stack, gate: Gate, agent: Agent
) -> None:
    web, cookies = named.web, crowd(gate)
    assert web is not None

    async def story() -> None:
        before = connections(named)
        async with AsyncExitStack() as stack:
            ears = await hold(named.base_url, cookies, stack)
            threads = list(Path(f"/proc/{web.pid}/task").iterdir())
            assert len(threads) < OPEN / 4
            # One that is past its age is replaced, and seen until its server ended.
            few = partial(few_connections, named, max(before, FEW))
            await asyncio.to_thread(wait_until, few, 10, partial(listed, named))
            await pages_are_served(named, cookies[0])
            await agent.propose()
            for one in ears:
                await one.hears(1)
            web.process.send_signal(signal.SIGTERM)
            await asyncio.gather(*(one.end() for one in ears))

    loops.run(story(), within=120)
    web.process.wait(30)


def few_connections(live: Stack, most: int) -> bool:
    return connections(live) <= most


def connections(live: Stack) -> int:
    """How many connections the web process has, but for the one that listens."""
    return len(activity(live))


def listed(live: Stack) -> str:
    """For who reads that there were too many."""
    return "\n".join(str(row) for row in activity(live))


def activity(live: Stack) -> list[tuple[Any, ...]]:
    with psycopg.connect(live.environ["DATABASE_URL"]) as connection:
        return connection.execute(
            "SELECT backend_start::text, state, query FROM pg_stat_activity "
            "WHERE application_name = 'streams' AND pid <> pg_backend_pid()"
        ).fetchall()


async def pages_are_served(live: Stack, cookies: dict[str, str]) -> None:
    """Ten pages are asked for while the streams are open."""
    async with httpx2.AsyncClient(trust_env=False, cookies=cookies) as client:
        for _ in range(10):
            answer = await client.get(f"{live.base_url}/queue/")
            assert answer.status_code == 200
