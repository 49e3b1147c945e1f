"""What is sent again, how often, always with the same key and bytes; and what never
leaves. The gate is the small one that fails when it is told to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.client.gate import KEY, Fault, LoopbackGate
from tests.client.typescript.node import Probe, Refused

REFUND = {
    "thread": "t",
    "tool": "process_refund",
    "args": {"order_id": "78291", "amount": "49.00", "currency": "USD"},
}
BACKOFF = {"attempts": 4, "first": 0.1}


def call(probe: Probe, gate: LoopbackGate, method: str, *args: Any, **more: Any) -> Any:
    given = {"url": gate.url, "key": KEY, "backoff": BACKOFF, "args": args, **more}
    return probe.ask("gate", method=method, **given)


@pytest.mark.parametrize(
    "fault",
    [
        Fault(503, "server"),
        Fault(409, "in_progress"),
        Fault(409, "conflict"),
        Fault(502, raw=b"<html>bad gateway</html>"),
        Fault(200, raw=b"<html>"),
        Fault(0, after=True),
    ],
    ids=["503", "in_progress", "conflict", "proxy_page", "not_json", "lost_answer"],
)
def test_a_passing_fault_is_asked_again_with_the_same_key(
    probe: Probe, gate: LoopbackGate, fault: Fault
) -> None:
    gate.faults = [fault, fault]
    assert call(probe, gate, "propose", REFUND)["id"] == "p-1"
    sent = {(headers["idempotency-key"], body) for _, _, headers, body in gate.calls}
    assert (len(gate.calls), len(sent), len(gate.proposals)) == (3, 1, 1)
    first, second = probe.ask("pauses")
    assert 0.075 <= first <= 0.1
    assert 0.15 <= second <= 0.2


def test_retry_after_is_obeyed_up_to_the_end_of_patience(
    probe: Probe, gate: LoopbackGate
) -> None:
    gate.faults = [Fault(429, "too_many", {"Retry-After": "7"})]
    call(probe, gate, "propose", REFUND)
    assert probe.ask("pauses") == [7]
    gate.faults = [Fault(429, "too_many", {"Retry-After": "3600"})]
    with pytest.raises(Refused) as caught:
        call(probe, gate, "propose", REFUND)
    assert (caught.value.name, caught.value.retryAfter) == ("ApiError", 3600)
    assert "Wait for `retryAfter` seconds" in caught.value.nextStep
    assert probe.ask("pauses") == []


@pytest.mark.parametrize("code", ["grant_spent", "stale_fence"])
def test_other_conflicts_are_not_asked_again(
    probe: Probe, gate: LoopbackGate, code: str
) -> None:
    gate.faults = [Fault(409, code)]
    with pytest.raises(Refused) as caught:
        call(probe, gate, "redeem", "token")
    assert (caught.value.code, len(gate.calls)) == (code, 1)


def test_nobody_there_is_unreachable(probe: Probe) -> None:
    nobody = LoopbackGate(url="http://127.0.0.1:9")
    with pytest.raises(Refused) as caught:
        call(probe, nobody, "whoami")
    assert caught.value.name == "Unreachable"
    assert len(probe.ask("pauses")) == 3


def test_another_service_is_told_from_the_gate(
    probe: Probe, gate: LoopbackGate
) -> None:
    gate.faults = [Fault(200, raw=b'{"id": 7}')]
    with pytest.raises(Refused) as caught:
        call(probe, gate, "propose", REFUND)
    assert caught.value.name == "InvalidAnswer"
    assert "id, thread, tool, status" in str(caught.value)


@pytest.mark.parametrize(
    "special", ["nan", "infinity", "surrogate", "beyond", "date", "bigint"]
)
def test_what_json_cannot_hold_never_leaves(
    probe: Probe, gate: LoopbackGate, special: str
) -> None:
    with pytest.raises(Refused) as caught:
        call(probe, gate, "propose", REFUND, special=special)
    assert caught.value.name == "TypeError"
    assert "args.n: " in str(caught.value)
    assert gate.calls == []


def test_people_are_shown_the_defaults_of_the_schema(
    probe: Probe, gate: LoopbackGate
) -> None:
    args = {"to": "ann", "text": "hello"}
    options = {"thread": "t", "callId": "c", "waitSeconds": 0}
    given = {"args": args, "options": options, "copies": 2}
    with pytest.raises(Refused) as caught:
        probe.ask("perform", url=gate.url, key=KEY, **given)
    assert caught.value.name == "ApprovalPending"
    assert json.loads(gate.calls[0][3])["args"] == {**args, "copies": 2}


def test_pages_follow_one_another(probe: Probe, gate: LoopbackGate) -> None:
    for number in range(3):
        call(probe, gate, "propose", {**REFUND, "thread": f"t-{number}"})
    first = call(probe, gate, "listPage", {"status": "pending"})
    second = call(probe, gate, "listPage", {"cursor": first["next_cursor"]})
    found = [row["id"] for row in first["items"] + second["items"]]
    assert found == ["p-3", "p-2", "p-1"]
