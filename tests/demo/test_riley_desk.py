"""Riley at work, against a small gate and the real store, on loopback."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from demo.riley import config, letters
from demo.riley.case import Message
from demo.riley.desk import Desk
from demo.riley.inbox import Inbox
from demo.riley.notebook import Notebook
from demo.riley.pace import Pace
from holdpoint_client import ApiError, Backoff, Client
from tests.client.gate import KEY, Fault, Gate, running

from .store import Store

ORDER = {
    "order_id": "78260",
    "status": "delivered",
    "carrier": "Bluebird Post",
    "carrier_status": "Delivered",
    "total": "59.00",
    "refunded": "0.00",
    "currency": "USD",
    "items": [],
    "customer_id": "C-1003",
    "customer_name": "Chidi Nwosu",
    "customer_email": "chidi.nwosu@example.org",
}


def executed(result: dict[str, Any]) -> dict[str, Any]:
    execution = {"id": "x-1", "status": "succeeded", "result": result}
    return {"status": "executed", "execution": execution}


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Look-ups and labels go through, money and mail wait, the rest is blocked."""
    with running() as gate:
        gate.answers = {
            "look_up_order": executed(ORDER),
            "add_label": executed({}),
            "draft_reply": executed({}),
            "wire_money": {"status": "blocked"},
        }
        yield gate


class Riley:
    """A desk that can be killed and started again on the same notebook."""

    def __init__(
        self, gate: Gate, store: Store, path: Path, stack: contextlib.ExitStack
    ) -> None:
        self.gate, self.store, self.path, self.stack = gate, store, path, stack
        self.naps: list[float] = []
        self.start()

    def start(self) -> None:
        http = self.stack.enter_context(httpx2.Client(trust_env=False))
        backoff = Backoff(attempts=1, sleep=self.naps.append)
        client = Client(self.gate.url, KEY, backoff=backoff)
        self.desk = Desk(
            self.stack.enter_context(client),
            Inbox(http, self.store.url),
            Notebook.read(self.path),
            Pace(0, 0, 0, prompt=1, listen=0, rest=60),
            sleep=self.naps.append,
        )

    def work(self, rounds: int) -> None:
        for _ in range(rounds):
            self.desk.tick()

    def proposed(self, thread: str) -> list[str]:
        return [
            p["tool"] for p in self.gate.proposals.values() if p["thread"] == thread
        ]


@pytest.fixture
def riley(gate: Gate, store: Store, tmp_path: Path) -> Iterator[Riley]:
    with contextlib.ExitStack() as stack:
        yield Riley(gate, store, tmp_path / "riley.json", stack)


def test_the_first_three_cases_show_every_tier(riley, gate):
    riley.work(6)
    assert riley.proposed("order_78260") == [
        "look_up_order",
        "add_label",
        "process_refund",
    ]
    assert "process_refund" in riley.proposed("order_78291")
    assert riley.proposed("order_78248") == [
        "look_up_order",
        "wire_money",
        "draft_reply",
    ]


def test_a_proposal_carries_evidence_reasons_and_a_checkpoint(riley, gate):
    riley.work(3)
    body = next(
        json.loads(call[3])
        for call in gate.calls
        if b'"process_refund"' in call[3] and b"78260" in call[3]
    )
    assert body["rationale"]
    assert body["expected_outcome"]
    assert body["alternatives"][0]["why_not"]
    assert "crackles" in body["evidence"][0]["text"]
    assert "total 59.00 USD" in body["evidence"][1]["text"]
    assert body["checkpoint"]["resume_at"] == "refund"
    assert body["on_behalf_of"] == {"kind": "customer", "id": "C-1003"}


def test_riley_takes_no_new_case_while_eight_wait(riley, gate):
    riley.work(25)
    waiting = [p for p in gate.proposals.values() if p["status"] == "pending"]
    assert 8 <= len(waiting) <= 10
    assert len(riley.desk.waiting()) == len(waiting)


def test_a_killed_riley_goes_on_from_the_checkpoint_and_proposes_nothing_twice(
    riley, gate
):
    riley.work(3)
    refund = next(p for p in gate.proposals.values() if p["tool"] == "process_refund")
    before = len([p for p in gate.proposals.values() if p["thread"] == "order_78260"])
    riley.start()
    riley.desk.next_case = float("inf")
    riley.work(1)
    assert len(riley.proposed("order_78260")) == before
    gate.settle(refund["id"], **executed({"amount": "59.00"}))
    riley.work(2)
    assert riley.proposed("order_78260")[-1] == "send_email"


def test_a_lost_notebook_leads_to_the_same_proposals(riley, gate):
    riley.work(6)
    keys = {call[2].get("idempotency-key") for call in gate.calls} - {None}
    riley.path.unlink()
    riley.start()
    riley.work(6)
    again = {call[2].get("idempotency-key") for call in gate.calls} - {None}
    assert keys <= again
    assert len(gate.proposals) == len(again)


def test_a_rejection_leads_to_another_way(riley, gate):
    riley.work(3)
    riley.desk.next_case = float("inf")
    refund = next(p for p in gate.proposals.values() if p["tool"] == "process_refund")
    decision = {"verdict": "reject", "reason_code": "wrong_amount", "reason": "Half."}
    gate.settle(refund["id"], status="rejected", decision=decision)
    riley.work(2)
    body = json.loads(
        [call[3] for call in gate.calls if b'"29.50"' in call[3]][-1].decode()
    )
    assert body["tool"] == "process_refund"


def test_a_finished_case_is_told_to_the_gate(riley, gate):
    riley.work(8)
    assert "order_78248" in gate.finished
    assert riley.desk.notebook.done["order_78248"]["result"] == "completed"


def test_a_stopped_agent_rests_and_keeps_its_case(riley, gate, monkeypatch):
    monkeypatch.setattr(riley.desk.gate, "whoami", lambda: {"state": "stopped"})
    gate.faults = [Fault(403, "agent_stopped")]
    with pytest.raises(ApiError, match="agent_stopped"):
        riley.work(1)
    assert "order_78260" in riley.desk.open
    riley.work(1)
    assert riley.proposed("order_78260")


def test_a_stopped_thread_ends_its_case_alone(riley, gate):
    gate.faults = [Fault(403, "agent_stopped")]
    riley.work(2)
    assert riley.desk.notebook.done["order_78260"]["result"] == "failed"
    assert riley.proposed("order_78291")


def test_too_many_waiting_is_a_reason_to_rest(riley, gate):
    gate.faults = [Fault(429, "too_many", {"Retry-After": "30"})]
    with pytest.raises(ApiError, match="too_many"):
        riley.work(1)
    assert "order_78260" in riley.desk.open


def test_a_long_text_keeps_both_ends_within_what_the_gate_takes():
    text = "start" + "x" * 30_000 + "the end"
    short = letters.shortened(text)
    assert len(short) <= 20_000
    assert short.startswith("start")
    assert short.endswith("the end")
    assert "characters left out" in short


def test_an_inbox_message_comes_as_it_was_written(store):
    with httpx2.Client(trust_env=False) as http:
        message = Inbox(http, store.url).read("m-001")
    assert message == Message(
        "m-001",
        message.received_at,
        "chidi.nwosu@example.org",
        "Chidi Nwosu",
        "Speaker crackles",
        message.text,
    )


def test_the_environment_wins_over_demo_json(tmp_path):
    seeded = {"base_url": "http://a", "agent_key": "hp_a", "store_url": "http://s"}
    (tmp_path / "demo.json").write_text(json.dumps(seeded))
    environ = {"STATE": str(tmp_path), "HOLDPOINT_URL": "http://b"}
    loaded = config.load(environ)
    assert (loaded.gate, loaded.key, loaded.store) == ("http://b", "hp_a", "http://s")


def test_without_a_key_riley_says_what_to_set(tmp_path):
    with pytest.raises(config.NotConfigured, match="HOLDPOINT_URL"):
        config.load({"STATE": str(tmp_path)})


def test_a_torn_notebook_is_an_empty_one(tmp_path):
    path = tmp_path / "riley.json"
    path.write_text('{"open": {"a"')
    assert Notebook.read(path).open == {}
