"""The schema, web processes and the worker are replaced one after the other, over three
releases, while agents propose and people decide: nobody sees more than a call to repeat
(T9). The two later releases make an example of a change, because every one that follows
must pass this."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from counterseal_client import ApiError, Backoff, Claim, Gate
from hitl.environment import LOOPBACK
from reviews.models import Execution, Proposal
from tests import worlds
from tests.guards import proving
from tests.journeys import example_change
from tests.journeys.elsewhere import Elsewhere, installed
from tests.journeys.example_change import Releases
from tests.journeys.fleet import Fleet, run_python, seed
from tests.stack import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.timeout(1200)]

TOOLS = ["pay", "pay_queryable", "pay_opaque", "write"]
WEBS = 2
PATIENCE_S = 60.0
# A web process may take its time to be replaced: the agents wait for it that long.
PATIENT = Backoff(attempts=30, longest=2.0)
# Between two actions of an agent: the proof goes without a rest.
REST_S = 0.5
# A lost lease is not waited for long.
SHORT = {
    "HTTP_TIMEOUT": "2",
    "SOFT_TIME_LIMIT": "5",
    "TIME_LIMIT": "6",
    "LEASE_SECONDS": "8",
    "VISIBILITY_TIMEOUT": "12",
}


class Life:
    """One agent, and who approves what it proposes. Both talk to one web process, and
    repeat what may be repeated."""

    def __init__(self, port: int, secrets: dict[str, str]) -> None:
        self.base = f"http://{LOOPBACK}:{port}"
        self.gate = Gate(self.base, secrets["agent"], backoff=PATIENT)
        self.person, self.port = secrets["person"], port
        self.done: list[str] = []

    def live(self, over: threading.Event) -> list[str]:
        number = 0
        with self.gate:
            while not over.is_set():
                self.act(number)
                number += 1
                over.wait(0 if proving() else REST_S)
        return self.done

    def act(self, number: int) -> None:
        tool, name = TOOLS[number % len(TOOLS)], f"{self.port}-{number}"
        proposal = self.gate.propose(
            thread=name, tool=tool, args=arguments(tool, name), rationale="asked for"
        )
        assert proposal.request is not None
        self.approve(proposal.request.id, proposal.action_hash)
        if tool == "write":
            self.write(proposal.id)
        else:
            settled = self.gate.wait(proposal.id, timeout=PATIENCE_S)
            assert settled.status == "executed", settled
        self.done.append(proposal.id)

    def approve(self, request: str, action_hash: str) -> None:
        """As a script of a person: it asks again where nobody answered."""
        body = {
            "version": 1,
            "action_hash": action_hash,
            "verdict": "approve",
            "reason_code": "verified",
        }
        decide = partial(self.post, f"requests/{request}/decide", body)
        answer = self.repeat(decide)
        while answer.json().get("code") == "conflict":  # the other release was at it
            answer = self.repeat(decide)
        decided = answer.status_code == 200 or answer.json()["code"] == "decided"
        assert decided, answer.text

    def post(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.person}"}
        url = f"{self.base}/api/v1/{path}"
        with httpx2.Client(trust_env=False, timeout=20) as client:
            return client.post(url, json=body, headers=headers)

    def repeat(self, call: Callable[[], httpx2.Response]) -> httpx2.Response:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                answer = call()
            except httpx2.TransportError:
                answer = None
            if answer is not None and answer.status_code < 500:
                return answer
            assert time.monotonic() < end, answer
            time.sleep(0.1)

    def write(self, proposal: str) -> None:
        """What the agent performs itself: redeemed here, reported there."""
        granted = self.gate.wait(proposal, timeout=PATIENCE_S)
        assert granted.grant is not None, granted
        claim = self.redeem(granted.grant.token)
        reported = self.gate.report(claim, "succeeded", result={"written": True})
        assert reported.status == "executed", reported

    def redeem(self, token: str) -> Claim:
        """Where the answer was lost with its web process: once more, after the lease
        that nobody holds."""
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.gate.redeem(token)
            except ApiError as error:
                if error.code != "grant_spent" or time.monotonic() > end:
                    raise
            time.sleep(0.5)


def arguments(tool: str, name: str) -> dict[str, str]:
    if tool == "write":
        return {"to": name, "text": "It is on its way."}
    return {"customer": name, "amount": "4.00", "currency": "USD"}


class Load:
    """One agent a web process, and who waits until they have done more."""

    def __init__(self, fleet: Fleet, secrets: dict[str, str]) -> None:
        self.fleet, self.over = fleet, threading.Event()
        self.agents = [Life(port, secrets) for port in fleet.ports]
        self.jobs: list[Future[list[str]]] = []

    def run_more(self, count: int) -> None:
        """Wait until each agent has done so many more actions."""
        goals = [len(agent.done) + count for agent in self.agents]

        def is_reached() -> bool:
            for job in self.jobs:
                if job.done():
                    job.result()
            pairs = zip(self.agents, goals, strict=True)
            return all(len(agent.done) >= goal for agent, goal in pairs)

        wait_until(
            is_reached, PATIENCE_S + 10 * count, lambda: self.fleet.log("worker")
        )

    @property
    def done(self) -> list[str]:
        """The proposals that ended as their agents expected."""
        return [proposal for agent in self.agents for proposal in agent.done]


@contextmanager
def load(fleet: Fleet, secrets: dict[str, str]) -> Iterator[Load]:
    """Agents that act until the block is left. A failure of theirs is one of the
    block."""
    running = Load(fleet, secrets)
    with ThreadPoolExecutor(len(running.agents)) as pool:
        act = partial(Life.live, over=running.over)
        running.jobs = [pool.submit(act, agent) for agent in running.agents]
        try:
            yield running
        finally:
            running.over.set()
        for job in running.jobs:
            job.result()


def replace_fleet(fleet: Fleet, load: Load, source: Path, each: int) -> None:
    """Web, worker, web; after each step both releases go on together."""
    first, second = fleet.ports
    fleet.replace_web(first, source)
    load.run_more(each)
    fleet.replace_worker(source)
    load.run_more(each)
    fleet.replace_web(second, source)
    load.run_more(each)


def upgrade_twice(other: Elsewhere, releases: Releases, each: int) -> list[str]:
    """Each release migrates the database while the one before it serves, and then takes
    its place. Returns the proposals."""
    environ = other.stack.environ | SHORT
    fleet = Fleet(other.here, environ, WEBS)
    secrets = seed(releases.present, environ)
    try:
        for port in fleet.ports:
            fleet.start_web(port, releases.present)
        fleet.replace_worker(releases.present)
        with load(fleet, secrets) as running:
            running.run_more(each)
            for source in (releases.expanded, releases.contracted):
                run_python(source, environ, "manage.py", "migrate", "--verbosity", "0")
                running.run_more(each)
                replace_fleet(fleet, running, source, each)
        assert not fleet.list_server_errors()
        return running.done
    finally:
        fleet.stop()


def test_two_releases_follow_under_load(
    tmp_path: Path,
    empty_world: None,
    django_db_blocker: DjangoDbBlocker,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T9, I1, I19: every proposal of before, during and after ends in one effect."""
    each = proof_n(small=1, full=50)
    releases = example_change.write_releases(tmp_path / "releases")
    run_python(releases.contracted, os.environ, "-m", "tests.house.migration_steps")
    with (
        django_db_blocker.unblock(),
        installed(tmp_path / "state") as other,
    ):
        done = upgrade_twice(other, releases, each)
        check_effects(done)
        words = example_change.count_words()
        connection.close()
    assert words.keys() == {"old", "new"}, "no release lost a row of another"
    record_proof(
        "T9",
        f"an example change expanded, filled in and contracted by two releases: schema,"
        f" {WEBS} web processes and the worker replaced one by one, twice, under load:"
        f" {len(done)} proposals, each executed once, 0 errors that a client could not"
        f" repeat (at most {3 / len(done):.1%})",
    )


def check_effects(done: list[str]) -> None:
    """Every proposal that was made ended as its agent expected, and was executed
    once."""
    assert set(Proposal.objects.values_list("pk", flat=True)) == set(done)
    assert Execution.objects.filter(status="succeeded").count() == len(done)
    happened = Counter(key for _, key, _ in worlds.effects())
    assert set(happened.values()) == {1}
    gates_own = Execution.objects.filter(by_agent=False)
    assert set(happened) == set(gates_own.values_list("idempotency_key", flat=True))
