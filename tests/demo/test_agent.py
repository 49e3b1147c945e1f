"""Riley at work, against a small gate and the real store, on loopback."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from counterseal_client import ApiError, Backoff, Gate
from demo.riley import agent
from reviews.evidence import rendering
from tests.client.gate import KEY, Fault, LoopbackGate, running
from tests.demo.conftest import Store
from tests.demo.test_planner import ORDER

SPEAKER = {**ORDER, "order_id": "78260", "total": "59.00", "customer_id": "C-1003"}


def executed(**result: Any) -> dict[str, Any]:
    execution = {"id": "x-1", "status": "succeeded", "result": result}
    return {"status": "executed", "execution": execution}


@pytest.fixture
def gate() -> Iterator[LoopbackGate]:
    """Look-ups and labels go through, money and mail wait, the rest is blocked."""
    with running() as gate:
        gate.answers = {
            "look_up_order": executed(**SPEAKER),
            "add_label": executed(),
            "draft_reply": executed(),
            "wire_money": {"status": "blocked"},
        }
        yield gate


class Worker:
    """A Riley that can be killed and started again."""

    def __init__(
        self, gate: LoopbackGate, store: Store, stack: contextlib.ExitStack
    ) -> None:
        self.gate, self.store, self.stack = gate, store, stack
        self.start()

    def start(self) -> None:
        http = httpx2.Client(trust_env=False, base_url=self.store.url)
        backoff = Backoff(attempts=1)
        self.riley = agent.Riley(
            self.stack.enter_context(
                Gate(self.gate.url, KEY, backoff=backoff, sleep=lambda _: None)
            ),
            self.stack.enter_context(http),
            pace_s=0,
            sleep=lambda _: None,
        )

    def work(self, rounds: int) -> None:
        for _ in range(rounds):
            self.riley.next_message = 0.0
            self.riley.work()

    def proposed(self, thread: str) -> list[str]:
        rows = self.gate.proposals.values()
        return [row["tool"] for row in rows if row["thread"] == thread]

    def find_refund(self) -> str:
        rows = self.gate.proposals.values()
        return str(next(p["id"] for p in rows if p["tool"] == "process_refund"))

    def ends(self) -> dict[str, str]:
        """The results of finished runs by thread."""
        sent = [(path.split("/"), body) for _, path, _, body in self.gate.calls]
        done = [(path, body) for path, body in sent if path[-1] == "finish"]
        return {path[-2]: json.loads(body)["result"] for path, body in done}


@pytest.fixture
def worker(gate: LoopbackGate, store: Store) -> Iterator[Worker]:
    with contextlib.ExitStack() as stack:
        yield Worker(gate, store, stack)


def test_the_first_three_messages_show_every_tier(worker):
    worker.work(8)
    refund = ["look_up_order", "add_label", "process_refund"]
    assert worker.proposed("order_78260") == refund
    assert worker.proposed("order_78291") == refund
    tools = ["look_up_order", "wire_money", "draft_reply"]
    assert worker.proposed("order_78248") == tools
    assert worker.ends()["order_78248"] == "completed"


def test_a_proposal_carries_evidence_reasons_and_a_checkpoint(worker, gate):
    worker.work(3)
    sent = [json.loads(body) for *_, body in gate.calls if b'"process_refund"' in body]
    body = sent[0]
    assert body["rationale"]
    assert body["expected_outcome"]
    assert body["alternatives"][0]["why_not"]
    assert "crackles" in body["evidence"][0]["text"]
    assert "total 59.00 USD" in body["evidence"][1]["text"]
    files = [item["file"]["name"] for item in body["evidence"][2:]]
    assert files == ["speaker-78260.png", "invoice-78260.pdf", "order-78260.csv"]
    uploads = [body for _, path, _, body in gate.calls if path.endswith("/evidence")]
    problems = [
        rendering.render_file(*one).problem
        for one in zip(
            ("image/png", "application/pdf", "text/csv"), uploads, strict=True
        )
    ]
    assert problems == ["", "", ""]
    assert body["checkpoint"]["resume_at"] == "refund"
    plan = [step["state"] for step in body["checkpoint"]["state"]["plan"]]
    assert plan == ["done", "done", "waiting", "next"]
    assert body["on_behalf_of"] == {"kind": "customer", "id": "C-1003"}


def test_riley_takes_no_new_message_while_eight_cases_wait(worker, gate):
    worker.work(25)
    waiting = [p for p in gate.proposals.values() if p["status"] == "pending"]
    assert 8 <= len(waiting) <= 14  # one message has six cases
    assert len(worker.riley.get_waiting()) == len(waiting)


def test_a_killed_riley_finds_its_cases_at_the_gate_and_proposes_nothing_twice(
    worker, gate
):
    worker.work(8)
    proposals, open_cases = len(gate.proposals), {*worker.riley.open}
    gate.answers["look_up_order"] = {"status": "pending"}
    worker.start()
    worker.work(1)
    assert {*worker.riley.open} > open_cases
    assert len(gate.proposals) == proposals + 1  # of the next message
    assert "order_78248" not in worker.riley.open
    gate.settle(worker.find_refund(), **executed(amount="59.00"))
    worker.work(2)
    assert worker.proposed("order_78260")[-1] == "send_email"


@pytest.mark.parametrize(
    "fault", [Fault(403, "agent_stopped"), Fault(429, "too_many"), Fault(500)]
)
def test_a_refusal_that_time_may_cure_keeps_the_case(worker, gate, fault):
    gate.state = "stopped"
    worker.riley.take_message()
    gate.faults = [fault]
    with pytest.raises(ApiError):
        worker.riley.advance("order_78260")
    worker.work(1)
    assert worker.proposed("order_78260")


def test_a_stopped_run_ends_its_case_alone(worker, gate):
    worker.riley.take_message()
    gate.faults = [Fault(403, "agent_stopped")]
    worker.riley.advance("order_78260")
    worker.work(2)
    assert worker.ends() == {"order_78260": "failed"}
    assert worker.proposed("order_78291")


def test_a_question_is_answered_once_with_what_riley_knows(worker, gate):
    worker.work(8)
    refund = worker.find_refund()
    gate.ask(refund, "Is the order delivered?")
    worker.work(2)
    sent = [
        message
        for message in gate.proposals[refund]["messages"]
        if message["from"] == "agent"
    ]
    assert [(message["kind"], message["round"]) for message in sent] == [("answer", 1)]
    assert "The store says of order 78260" in sent[0]["text"]
    assert gate.proposals[refund]["status"] == "pending"


def test_a_proposal_that_was_sent_back_is_withdrawn(worker, gate):
    worker.work(8)
    refund = worker.find_refund()
    gate.settle(refund, returned=True)
    worker.work(2)
    assert gate.proposals[refund]["status"] == "withdrawn"
    assert worker.ends()["order_78260"] == "gave_up"


def test_a_long_text_keeps_both_ends_within_what_the_gate_takes():
    short = agent.shorten("start" + "x" * 30_000 + "the end")
    assert len(short) <= 20_000
    assert short.startswith("start")
    assert short.endswith("the end")
    assert "characters left out" in short


def test_riley_asks_people_once_and_does_not_wait(
    gate: LoopbackGate, worker: Worker
) -> None:
    for _ in range(2):
        worker.riley.ask()
        worker.start()
    worker.riley.ask()
    (question,) = gate.questions.values()
    assert (question["to"], question["status"]) == ("refunds", "open")
