"""Web processes, a worker and the schema are replaced one after the other while agents
propose and people decide: nobody sees more than a call to repeat (T9)."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from counterseal_client import ApiError, Claim, Gate
from hitl.environment import LOOPBACK
from reviews.models import Execution, Proposal
from tests import worlds
from tests.guards import ROOT, proving
from tests.journeys import earlier
from tests.journeys.earlier import COMMIT, Fleet
from tests.journeys.elsewhere import Elsewhere, installed
from tests.stack import wait_until

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.timeout(1200)]

TOOLS = ["pay", "pay_queryable", "pay_opaque", "write"]
WEBS = 2
PATIENCE_S = 60.0
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
        self.gate = Gate(self.base, secrets["agent"])
        self.person, self.port = secrets["person"], port
        self.done: list[str] = []

    def live(self, over: threading.Event) -> list[str]:
        number = 0
        with self.gate:
            while not over.is_set():
                self.one(number)
                number += 1
                over.wait(0 if proving() else REST_S)
        return self.done

    def one(self, number: int) -> None:
        tool, name = TOOLS[number % len(TOOLS)], f"{self.port}-{number}"
        proposal = self.gate.propose(
            thread=name, tool=tool, args=arguments(tool, name), rationale="asked for"
        )
        assert proposal.request is not None
        self.approve(proposal.request.id, proposal.action_hash)
        if tool == "write":
            self.write(proposal.id)
        else:
            said = self.gate.wait(proposal.id, timeout=PATIENCE_S)
            assert said.status == "executed", said
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
        said = self.repeat(decide)
        while said.json().get("code") == "conflict":  # the other release was at it
            said = self.repeat(decide)
        assert said.status_code == 200 or said.json()["code"] == "decided", said.text

    def post(self, path: str, body: dict[str, Any]) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.person}"}
        url = f"{self.base}/api/v1/{path}"
        with httpx2.Client(trust_env=False, timeout=20) as client:
            return client.post(url, json=body, headers=headers)

    def repeat(self, call: Callable[[], httpx2.Response]) -> httpx2.Response:
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                said = call()
            except httpx2.TransportError:
                said = None
            if said is not None and said.status_code < 500:
                return said
            assert time.monotonic() < end, said
            time.sleep(0.1)

    def write(self, proposal: str) -> None:
        """What the agent performs itself: redeemed here, reported there."""
        granted = self.gate.wait(proposal, timeout=PATIENCE_S)
        assert granted.grant is not None, granted
        claim = self.redeem(granted.grant.token)
        said = self.gate.report(claim, "succeeded", result={"written": True})
        assert said.status == "executed", said

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


@contextmanager
def lives(fleet: Fleet, secrets: dict[str, str]) -> Iterator[Callable[[int], None]]:
    """One agent a web process, until the block is left; gives who waits until so many
    more have been done by each."""
    over = threading.Event()
    agents = [Life(port, secrets) for port in fleet.ports]
    with ThreadPoolExecutor(len(agents)) as pool:
        jobs = [pool.submit(agent.live, over) for agent in agents]

        def more(count: int) -> None:
            goal = [len(agent.done) + count for agent in agents]

            def reached() -> bool:
                failed = [job for job in jobs if job.done()]
                for job in failed:
                    job.result()
                return all(len(a.done) >= n for a, n in zip(agents, goal, strict=True))

            wait_until(reached, PATIENCE_S + 10 * count, lambda: fleet.log("worker"))

        try:
            yield more
        finally:
            over.set()
        for job in jobs:
            job.result()


def upgrade(other: Elsewhere, source: Path, each: int) -> None:
    """Schema, web, worker, web; after each step both releases go on together."""
    environ = other.stack.environ | SHORT
    earlier.python(source, environ, "manage.py", "migrate", "--verbosity", "0")
    secrets = earlier.seed(source, environ)
    fleet = Fleet(other.here, environ, WEBS)
    try:
        for port in fleet.ports:
            fleet.start_web(port, source)
        fleet.replace_worker(source)
        with lives(fleet, secrets) as more:
            more(each)
            other.manage("migrate", "--verbosity", "0")
            more(each)
            fleet.replace_web(fleet.ports[0], ROOT)
            more(each)
            fleet.replace_worker(ROOT)
            more(each)
            fleet.replace_web(fleet.ports[1], ROOT)
            more(each)
    finally:
        fleet.stop()


def test_one_release_follows_the_other_under_load(
    tmp_path: Path,
    empty_world: None,
    django_db_blocker: DjangoDbBlocker,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """T9, I1, I19: every proposal of before, during and after ends in one effect."""
    each = proof_n(small=2, full=100)
    source = earlier.check_out(tmp_path / "earlier")
    state = tmp_path / "state"
    with (
        django_db_blocker.unblock(),
        installed(state, migrated=False) as other,
    ):
        upgrade(other, source, each)
        count = check()
        connection.close()
    record_proof(
        "T9",
        f"schema, {WEBS} web processes and the worker of {COMMIT} replaced one by one"
        f" under load: {count} proposals, each executed once, 0 errors that a client"
        f" could not repeat (at most {3 / count:.1%})",
    )


def check() -> int:
    """How many there were; each was done once."""
    count = Proposal.objects.count()
    assert Execution.objects.filter(status="succeeded").count() == count
    happened = Counter(key for _, key, _ in worlds.effects())
    assert set(happened.values()) == {1}
    gates_own = Execution.objects.filter(by_agent=False)
    assert set(happened) == set(gates_own.values_list("idempotency_key", flat=True))
    return count
