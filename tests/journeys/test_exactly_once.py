"""The thin thread through everything: real web, worker, broker and database."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from agents import keys
from journal import sequencer
from journal.models import LogPosition, LogRecord
from reviews.people import tokens
from tests import worlds
from tests.conftest import Gate
from tests.stack import Stack, wait_until

pytestmark = [pytest.mark.servers, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def agent(gate: Gate, live: Stack) -> Iterator[httpx2.Client]:
    """The tests' agent at the web process."""
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    headers = {"Authorization": f"Bearer {key}"}
    with httpx2.Client(
        base_url=f"{live.base_url}/api/v1", headers=headers, timeout=70
    ) as client:
        yield client


@pytest.fixture
def reviewer(gate: Gate, live: Stack) -> Iterator[httpx2.Client]:
    """Rita with a personal token."""
    token = tokens.create_token(person=gate.rita, name="script")
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{live.base_url}/api/v1", headers=headers) as client:
        yield client


def propose(agent: httpx2.Client, key: str, tool: str = "pay", **fields: Any) -> Any:
    args = {"customer": "C-1", "amount": "40.00", "currency": "USD"}
    body = {"thread": "t-1", "tool": tool, "args": args, **fields}
    said = agent.post("/proposals", json=body, headers={"Idempotency-Key": key})
    assert said.status_code in {200, 201}, said.text
    return said.json()


def approve(reviewer: httpx2.Client, proposal: Any) -> httpx2.Response:
    request = reviewer.get(f"/requests/{proposal['request']['id']}").json()
    return reviewer.post(
        f"/requests/{request['id']}/decide",
        json={
            "version": request["version"],
            "action_hash": request["action_hash"],
            "verdict": "approve",
        },
    )


def test_a_payment_waits_is_approved_happens_once_and_is_logged_step_by_step(
    live: Stack, agent: httpx2.Client, reviewer: httpx2.Client
) -> None:
    live.start_worker(processes=1)
    proposal = propose(agent, "one")
    assert proposal["status"] == "pending"
    assert approve(reviewer, proposal).status_code == 200
    said = agent.get(f"/proposals/{proposal['id']}?wait=30").json()
    assert said["status"] == "executed"
    assert len(worlds.effects()) == 1
    kinds = LogRecord.objects.filter(proposal=proposal["id"]).values_list(
        "kind", flat=True
    )
    assert list(kinds.order_by("id")) == [
        "proposal.submitted",
        "request.opened",
        "decision.recorded",
        "request.authorized",
        "grant.issued",
        "execution.queued",
        "grant.spent",
        "execution.claimed",
        "execution.succeeded",
    ]

    def all_placed() -> bool:
        sequencer.sequence_records()
        return LogPosition.objects.count() == LogRecord.objects.count()

    wait_until(all_placed, 20, lambda: live.log("worker"))
    seqs = list(LogPosition.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(len(seqs)))


def test_a_waiting_agent_hears_of_the_decision_at_once(
    live: Stack, agent: httpx2.Client, reviewer: httpx2.Client
) -> None:
    proposal = propose(agent, "one")
    heard: list[str] = []

    def wait() -> None:
        said = agent.get(f"/proposals/{proposal['id']}?wait=60", timeout=90).json()
        heard.append(said["status"])

    waiting = threading.Thread(target=wait)
    waiting.start()
    request = reviewer.get(f"/requests/{proposal['request']['id']}").json()
    reviewer.post(
        f"/requests/{request['id']}/decide",
        json={
            "version": request["version"],
            "action_hash": request["action_hash"],
            "verdict": "reject",
            "reason_code": "not_needed",
        },
    )
    waiting.join(timeout=40)  # it would wait for a minute
    assert heard == ["rejected"]


def test_the_worker_is_killed_and_the_effect_stays_one(
    live: Stack, agent: httpx2.Client, reviewer: httpx2.Client
) -> None:
    live.start_worker(processes=1)
    first = propose(agent, "one")
    approve(reviewer, first)
    live.kill_worker()
    second = propose(agent, "two", thread="t-2")
    approve(reviewer, second)
    live.empty_broker()
    live.start_worker(processes=1)
    for proposal in (first, second):
        said = agent.get(f"/proposals/{proposal['id']}?wait=60").json()
        assert said["status"] == "executed"
    assert len(worlds.effects()) == 2
