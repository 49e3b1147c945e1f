"""A real uvicorn with clients that wait."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import psycopg
import pytest
from django.conf import settings

from hitl.local.process import Child, Program
from tests import loops
from tests.stack import Stack, free_port, wait_until

pytestmark = pytest.mark.servers

WAITING = 100  # clients at once: many more than threads or connections


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def web(live: Stack, port: int, tmp_path: Path) -> Iterator[Child]:
    """One process of tests/hitl/live/waiting.py."""
    command = (
        f"-m uvicorn tests.hitl.live.waiting:application --lifespan on --port {port}"
    )
    program = Program(
        name="waiting",
        argv=[sys.executable, *command.split()],
        env=live.environ,
        log=tmp_path / "log",
    )
    child = Child(program)
    wait_until(lambda: answers(port), 30, (tmp_path / "log").read_text)
    yield child
    child.kill()


def answers(port: int) -> bool:
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/asked", trust_env=False).is_success
    except httpx2.TransportError:
        return False


async def wait_for_all(port: int, act: Callable[[], object]) -> list[httpx2.Response]:
    """Many clients wait for a minute; `act` is done once they all do. Their answers."""
    limits = httpx2.Limits(max_connections=WAITING)
    async with httpx2.AsyncClient(limits=limits, timeout=60, trust_env=False) as client:
        base = f"http://127.0.0.1:{port}/api/v1/proposals"
        asks = [
            asyncio.ensure_future(client.get(f"{base}/p-{number}?wait=60"))
            for number in range(WAITING)
        ]
        while await asked(port) < WAITING:
            await asyncio.sleep(0.1)
        assert not any(ask.done() for ask in asks)
        act()
        return await asyncio.gather(*asks)


async def asked(port: int) -> int:
    async with httpx2.AsyncClient(trust_env=False, timeout=10) as client:
        return int((await client.get(f"http://127.0.0.1:{port}/asked")).text)


def test_waiting_holds_no_thread_and_no_connection_and_ends_at_sigterm(
    web: Child, port: int, live: Stack
) -> None:
    held: list[int] = []

    def look() -> None:
        threads = Path(f"/proc/{web.pid}/task")
        held.append(len(list(threads.iterdir())))
        with psycopg.connect(live.environ["DATABASE_URL"]) as connection:
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s "
                "AND application_name = 'counterseal hub'"
            )
            name = live.environ["DATABASE_URL"].split("?")[0].rsplit("/", 1)[-1]
            held.extend(connection.execute(query, [name]).fetchone() or ())
        assert answers(port)  # somebody else is served meanwhile
        web.process.send_signal(signal.SIGTERM)

    responses = loops.run(wait_for_all(port, look), within=60)
    web.process.wait(30)
    threads, hubs = held
    assert threads < WAITING / 4  # the pool and the few of the loop and the driver
    assert hubs < WAITING / 4  # one a process, however many wait
    assert {response.status_code for response in responses} == {200}
    assert {response.json()["status"] for response in responses} == {"pending"}
    assert not any("counterseal-wait" in response.headers for response in responses)


def test_the_live_web_refuses_a_body_that_is_too_large(live: Stack) -> None:
    response = httpx2.post(
        f"{live.base_url}/api/v1/proposals", content=b"x" * 2_000_000, trust_env=False
    )
    assert response.status_code == 413
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.json()["code"] == "too_large"


def test_the_live_web_is_ready_and_gives_its_security_headers(live: Stack) -> None:
    response = httpx2.get(f"{live.base_url}/readyz", trust_env=False)
    assert response.json()["status"] == "ok"
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "same-origin"
    assert "server" not in response.headers
    assert settings.COUNTERSEAL.local
