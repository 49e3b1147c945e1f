"""One agent proposes five thousand times a minute: its caps hold, nobody else waits for
it, and what is critical stands first (T21)."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from agents import keys
from desk.queue import page
from desk.queue.filters import QueueFilters
from hitl import asgi
from journal import canonical
from journal.models import LogRecord
from reviews.models import Proposal
from reviews.people import tokens
from tests import factories
from tests.conftest import Gate
from tests.factories import proposal_body
from tests.guards import ROOT, proving
from tests.stack import Stack

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]

A_MINUTE, MINUTE = 5_000, timedelta(minutes=1)
CAP = 120  # proposals a minute, so that it is met at once
MOST_SLOWER = 1.5
BEATS = 10  # calls a second of everybody else


@pytest.fixture
def capped(live: Stack) -> Iterator[Stack]:
    """A web process with a low cap on one agent's proposals."""
    own = Stack(live.state, {"AGENT_RATE_PER_MINUTE": str(CAP)})
    own.start_web()
    yield own
    own.kill_web()


class Others:
    """Who is not the flood: another agent that proposes, and a person at her queue."""

    def __init__(self, gate: Gate, stack: Stack) -> None:
        self.gate, self.stack = gate, stack
        self.agent = factories.agent(gate.owen, "quiet")
        self.key = keys.issue_key(agent=self.agent, by=gate.owen)
        self.token = tokens.create_token(person=gate.sue, name="script")
        self.number = 0

    def work(self, seconds: float) -> list[float]:
        """How long each call took, in seconds; none is refused. Ten calls a second, one
        of them a proposal."""
        times, began = [], time.monotonic()
        with httpx2.Client(base_url=self.stack.base_url, trust_env=False) as client:
            for beat in range(int(seconds * BEATS)):
                time.sleep(max(began + beat / BEATS - time.monotonic(), 0))
                call = self.queue if beat % BEATS else self.propose
                asked = time.perf_counter()
                assert call(client).is_success
                times.append(time.perf_counter() - asked)
        return times

    def propose(self, client: httpx2.Client, tool: str = "note") -> httpx2.Response:
        self.number += 1
        name = f"q-{self.number}"
        body = proposal_body(tool, thread=name)
        return client.post(
            "/api/v1/proposals",
            json=body.model_dump(mode="json", exclude_unset=True),
            headers={"Authorization": f"Bearer {self.key}", "Idempotency-Key": name},
        )

    def queue(self, client: httpx2.Client) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return client.get("/api/v1/requests", headers=headers)


def flood(stack: Stack, key: str, seconds: float) -> subprocess.Popen[str]:
    rate = A_MINUTE / 60
    command = ["-m", "tests.journeys.flooding", str(stack.port), key]
    return subprocess.Popen(
        [sys.executable, *command, str(rate), str(seconds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


def answered(flooding: subprocess.Popen[str]) -> Counter[str]:
    said, _ = flooding.communicate(timeout=60)
    assert flooding.returncode == 0
    return Counter(json.loads(said))


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def test_a_flood_is_its_own_agents_affair(
    gate: Gate,
    capped: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    others, loud = Others(gate, capped), keys.issue_key(agent=gate.agent, by=gate.owen)
    seconds, rounds = proof_n(small=2, full=12), proof_n(small=1, full=5)
    ratios, said, calls = [], Counter[str](), 0
    for _ in range(rounds):
        alone = others.work(seconds)
        flooding = flood(capped, loud, seconds + 1)
        beside = others.work(seconds)
        said += answered(flooding)
        ratios.append(p95(beside) / p95(alone))
        calls += len(alone) + len(beside)
    check_caps(said)
    check_order(others)
    if proving():
        assert statistics.median(ratios) <= MOST_SLOWER, ratios
        record_proof("T21", line(said, ratios, calls, seconds))


def check_caps(said: Counter[str]) -> None:
    """What came through is what the cap lets through; the rest were told to wait, and
    every one of them is in the log."""
    assert set(said) == {"201", "429"}
    through = Proposal.objects.filter(agent="riley").order_by("created_at")
    at = list(through.values_list("created_at", flat=True))
    assert len(at) == said["201"] >= CAP
    early = [
        a for a, b in zip(at, at[CAP + asgi.THREADS :], strict=False) if b - a < MINUTE
    ]
    assert not early, "more than the cap within a minute, and those under way"
    refused = LogRecord.objects.filter(kind="proposal.refused", agent="riley")
    told = [canonical.parse(bytes(one.leaf))["data"] for one in refused]
    assert told
    assert sum(1 + one.get("unasked", 0) for one in told) <= said["429"]
    assert len(told) < said["429"]


def check_order(others: Others) -> None:
    """A critical request of another agent is the first of hundreds."""
    with httpx2.Client(base_url=others.stack.base_url, trust_env=False) as client:
        asked: dict[str, Any] = others.propose(client, "deploy").json()
    assert asked["risk"] == "critical"
    assert (
        page.list_decidable_ids(others.gate.sue, QueueFilters())[0]
        == asked["request"]["id"]
    )


def line(said: Counter[str], ratios: list[float], calls: int, seconds: int) -> str:
    slower = statistics.median(ratios)
    return (
        f"{said.total():,} proposals of one agent at {A_MINUTE:,} a minute: "
        f"{said['201']:,} taken (cap {CAP} a minute), {said['429']:,} told to wait; "
        f"p95 of the others {slower:.2f} x the same without it (at most "
        f"{MOST_SLOWER}), median of "
        f"{len(ratios)} alternating rounds of {seconds} s (n {calls:,}; "
        f"{min(ratios):.2f} to {max(ratios):.2f}); what is critical stood first"
    )
