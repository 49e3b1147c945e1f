"""Nothing is held for agents whose proposals wait for people."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents import keys
from counterseal_client import Gate as Client
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.stack import Stack, list_descendants, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.proof, pytest.mark.django_db]

AGENTS = 10
ESTABLISHED = "01"  # in /proc/net/tcp


def test_waiting_proposals_hold_no_process_and_no_connection(
    gate: Gate,
    live: Stack,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    """Ten agents propose, and go; none of them polls."""
    count = proof_n(small=100, full=10_000)
    live.start_worker(processes=1)
    before = count_processes(live)
    callers = [make_key(gate, number) for number in range(AGENTS)]
    with ThreadPoolExecutor(AGENTS) as pool:
        for done in [
            pool.submit(propose_many, live.base_url, key, count // AGENTS)
            for key in callers
        ]:
            done.result()
    assert ApprovalRequest.objects.filter(status="pending").count() == count
    wait_until(lambda: count_connections(live.port) == 0, 10)
    assert count_processes(live) == before
    record_proof(
        "waiting",
        f"{count:,} waiting proposals of {AGENTS} agents, none of them polling: 0"
        " processes and 0 connections of theirs",
    )


def make_key(gate: Gate, number: int) -> str:
    """The key of an agent of its own."""
    agent = factories.agent(gate.owen, f"riley-{number}")
    return keys.issue_key(agent=agent, by=gate.owen)


def propose_many(url: str, key: str, count: int) -> None:
    """Proposals that all wait for people, by a client that then ends."""
    with Client(url, key) as client:
        for number in range(count):
            customer = f"C-{key[3:11]}-{number}"
            args = {"customer": customer, "amount": "40.00", "currency": "USD"}
            made = client.propose(f"t-{number}", "pay", args, rationale="asked")
            assert made.status == "pending"


def count_connections(port: int) -> int:
    """How many connections to this port of loopback are open."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    found = [line.split()[1:4] for line in lines]
    return sum(
        int(local.rpartition(":")[2], 16) == port and state == ESTABLISHED
        for local, _, state in found
    )


def count_processes(live: Stack) -> int:
    """How many processes the web and its workers have."""
    programs = [live.web, *live.workers]
    running = [one.process.pid for one in programs if one is not None]
    return sum(1 + len(list(list_descendants(pid))) for pid in running)
