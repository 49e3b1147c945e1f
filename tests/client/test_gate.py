"""Every call of the client, against a real server."""

from __future__ import annotations

import json
import threading

import pytest
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    use_span,
)

from counterseal_client import ApiError, Gate, encode_blob
from tests.client.conftest import Pauses
from tests.client.gate import LoopbackGate

NOON = "2026-08-22T12:00:00Z"
REFUND = {"order_id": "78291", "amount": "49.00", "currency": "USD"}


def body_of(gate: LoopbackGate, call: int = -1) -> dict[str, object]:
    body: dict[str, object] = json.loads(gate.calls[call][3])
    return body


def test_a_proposal_carries_its_details_and_a_key(gate, client):
    client.propose("order_1", "process_refund", REFUND, rationale="Damaged.")
    method, path, headers, _ = gate.calls[0]
    assert (method, path) == ("POST", "/api/v1/proposals")
    assert len(headers["idempotency-key"]) >= 32
    assert body_of(gate) == {
        "thread": "order_1",
        "tool": "process_refund",
        "args": REFUND,
        "rationale": "Damaged.",
    }


def test_a_call_inside_a_span_carries_its_trace(gate, client):
    context = SpanContext(0xABC, 0xDEF, is_remote=False, trace_flags=TraceFlags(1))
    with use_span(NonRecordingSpan(context)):
        client.propose("order_1", "process_refund", REFUND)
    client.propose("order_2", "process_refund", REFUND)
    found = [headers.get("traceparent") for _, _, headers, _ in gate.calls]
    assert found == [f"00-{0xABC:032x}-{0xDEF:016x}-01", None]


def test_the_answer_is_typed_and_ignores_fields_of_later_versions(client):
    proposal = client.propose("order_1", "process_refund", REFUND)
    assert proposal.status == "pending"
    assert not proposal.final
    assert proposal.policy.rules[0].id == "refund.any"
    assert proposal.request is not None
    assert proposal.request.steps[0].role == "reviewer"
    assert proposal.request.expires_at is not None
    assert proposal.request.expires_at.tzinfo is not None
    assert proposal.model_extra == {"added_later": True}


def test_two_proposals_get_two_keys(gate, client):
    client.propose("order_1", "process_refund", REFUND)
    client.propose("order_1", "process_refund", REFUND)
    assert len(gate.proposals) == 2


def test_the_same_key_leads_to_the_same_proposal(gate, client):
    first = client.propose("t", "process_refund", REFUND, idempotency_key="t:1")
    again = client.propose("t", "process_refund", REFUND, idempotency_key="t:1")
    assert again.id == first.id
    assert len(gate.proposals) == 1


def test_a_key_used_for_another_body_is_refused(client):
    client.propose("t", "process_refund", REFUND, idempotency_key="t:1")
    with pytest.raises(ApiError) as caught:
        client.propose("t", "add_label", {"label": "x"}, idempotency_key="t:1")
    assert (caught.value.status, caught.value.code) == (422, "key_reused")


def test_wrong_arguments_are_told_by_path(client, pauses: Pauses):
    with pytest.raises(ApiError) as caught:
        client.propose("t", "process_refund", {"amount": 49.0})
    assert caught.value.errors[0].path == "args.amount"
    assert pauses.taken == []


def test_a_wrong_key_is_refused_at_once(gate, pauses: Pauses):
    with Gate(gate.url, "cs_wrong") as client, pytest.raises(ApiError) as caught:
        client.whoami()
    assert caught.value.code == "bad_key"


def test_waiting_ends_when_the_proposal_is_settled(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    decision = {
        "verdict": "reject",
        "reason_code": "wrong_amount",
        "reason": "Too much.",
        "final_args": None,
        "by_role": "reviewer",
        "decided_at": "2026-08-22T18:40:00Z",
    }
    facts = {"status": "rejected", "decision": decision}
    timer = threading.Timer(0.2, gate.settle, (proposal.id,), facts)
    timer.start()
    settled = client.wait(proposal.id, timeout=20)
    timer.join()
    assert settled.final
    assert settled.decision is not None
    assert settled.decision.reason_code == "wrong_amount"
    assert "wait=20" in gate.calls[-1][1]


def test_waiting_gives_back_what_stands_when_the_time_is_over(client):
    proposal = client.propose("t", "process_refund", REFUND)
    assert client.wait(proposal.id, timeout=0.3).status == "pending"


def test_no_wait_asks_once(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    client.wait(proposal.id, timeout=0)
    assert len(gate.calls) == 2
    assert "wait=" not in gate.calls[-1][1]


def test_waiting_ends_when_it_is_given_back(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    gate.facts_at_wait[proposal.id] = {"returned": True}
    assert client.wait(proposal.id, timeout=20).returned


def test_what_was_given_back_before_is_waited_for_all_the_same(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    gate.settle(proposal.id, returned=True)
    assert client.wait(proposal.id, timeout=0.3).status == "pending"
    assert "wait=1" in gate.calls[-1][1]


def test_an_outcome_is_acknowledged_by_its_name(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    gate.settle(proposal.id, status="executed", outcome="o-1", acknowledged_at=None)
    settled = client.wait(proposal.id)
    assert (settled.outcome, settled.acknowledged_at) == ("o-1", None)
    assert client.acknowledge(settled).acknowledged_at


def test_resuming_waits_for_the_outcome(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    gate.checkpoints["t"] = {"proposal": proposal.id}
    gate.facts_at_wait[proposal.id] = {"status": "executed", "outcome": "o-1"}
    found = client.resume("t", timeout=20)
    assert found.outcome.outcome == "o-1"
    assert found.due == found.outcome


@pytest.mark.parametrize(
    "meanwhile",
    [
        {},
        {"returned": True},
        {
            "status": "executed",
            "outcome": "o-1",
            "acknowledged_at": "2026-01-01T00:00:00Z",
        },
    ],
    ids=["nothing", "given back", "taken by a letter"],
)
def test_resuming_says_when_there_is_nothing_to_act_upon(gate, client, meanwhile):
    proposal = client.propose("t", "process_refund", REFUND)
    gate.checkpoints["t"] = {"proposal": proposal.id}
    gate.facts_at_wait[proposal.id] = meanwhile
    found = client.resume("t", timeout=1)
    assert found.outcome.id == proposal.id
    assert found.due is None


def test_what_has_no_outcome_is_not_acknowledged(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    with pytest.raises(ValueError, match="no outcome"):
        client.acknowledge(proposal)
    assert len(gate.calls) == 1


def test_the_list_goes_through_every_page(gate, client):
    for number in range(5):
        client.propose(f"t{number}", "process_refund", REFUND)
    gate.settle("p-2", status="executed")
    assert [p.id for p in client.list()] == ["p-5", "p-4", "p-3", "p-2", "p-1"]
    assert [p.id for p in client.list(status="executed")] == ["p-2"]


def test_withdraw_answers_with_the_proposal(client):
    proposal = client.propose("t", "process_refund", REFUND)
    assert client.withdraw(proposal.id).status == "withdrawn"


def test_a_grant_is_redeemed_and_its_outcome_reported(gate, client):
    proposal = client.propose("t", "process_refund", REFUND)
    redeemed = client.redeem("token")
    assert (redeemed.execution, redeemed.fence) == ("x-1", 3)
    assert client.report(redeemed, "succeeded", result={"ok": 1}).id == proposal.id
    assert gate.calls[-1][1] == "/api/v1/executions/x-1/outcome"
    assert body_of(gate) == {
        "fence": 3,
        "status": "succeeded",
        "result": {"ok": 1},
        "action_hash": "sha256:00",
    }


def test_a_checkpoint_comes_back_with_its_blob_and_outcome(gate, client):
    proposal = client.propose(
        "order_78291",
        "process_refund",
        REFUND,
        checkpoint={"blob": encode_blob(b"\x00\x01")},
    )
    gate.settle(proposal.id, status="rejected")
    resume = client.checkpoint("order_78291")
    assert resume.thread == "order_78291"
    assert resume.checkpoint is not None
    assert resume.checkpoint.blob == b"\x00\x01"
    assert resume.checkpoint.proposal == proposal.id
    assert resume.outcome is not None
    assert (resume.outcome.id, resume.outcome.status) == (proposal.id, "rejected")


def test_a_thread_is_finished_by_its_name(gate, client):
    client.finish("order/1", "gave_up")
    assert gate.calls[-1][1] == "/api/v1/threads/order%2F1/finish"
    assert body_of(gate) == {"result": "gave_up"}


def test_who_am_i_and_my_tools(gate, client):
    gate.tools = [{"name": "process_refund", "schema": {"type": "object"}}]
    assert client.whoami().agent == "riley"
    assert [tool.name for tool in client.tools()] == ["process_refund"]
    assert client.tools()[0].arguments == {"type": "object"}


def test_a_question_is_answered_and_only_people_are_news(gate, client):
    first = client.propose("t", "process_refund", REFUND)
    gate.ask(first.id, "Which order?", 1)
    gate.ask(first.id, "Which customer?", 2)
    heard = client.wait(first.id, 0)
    assert [one.round for one in heard.questions] == [1, 2]
    client.answer(first.id, "Order 78291.", round=1)
    after = client.ask_reviewers(first.id, "Is a photo enough?")
    assert [one.round for one in after.questions] == [2]
    assert len(after.received) == 2
    assert [one.sender for one in client.messages(first.id)][2:] == ["agent", "agent"]
    assert body_of(gate, -2) == {"kind": "question", "text": "Is a photo enough?"}
