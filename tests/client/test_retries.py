"""What is asked again, how often, and always with the same key and bytes."""

from __future__ import annotations

import pytest

from counterseal_client import ApiError, Backoff, Gate, Unreachable
from tests.client.conftest import Pauses
from tests.client.gate import KEY, Fault, LoopbackGate

REFUND = {"order_id": "78291", "amount": "49.00", "currency": "USD"}


def keys_and_bodies(gate: LoopbackGate) -> set[tuple[str, bytes]]:
    return {(headers["idempotency-key"], body) for _, _, headers, body in gate.calls}


@pytest.mark.parametrize(
    "fault",
    [
        Fault(503, "server"),
        Fault(500, "server"),
        Fault(409, "in_progress"),
        Fault(409, "conflict"),
        Fault(502, raw=b"<html>bad gateway</html>"),
        Fault(0),
    ],
    ids=["503", "500", "in_progress", "conflict", "proxy_page", "cut_line"],
)
def test_a_passing_fault_is_asked_again_with_the_same_key(gate, client, fault):
    gate.faults = [fault, fault]
    proposal = client.propose("t", "process_refund", REFUND)
    assert proposal.id == "p-1"
    assert len(gate.calls) == 3
    assert len(keys_and_bodies(gate)) == 1


def test_a_lost_answer_does_not_propose_twice(gate, client):
    gate.faults = [Fault(0, after=True), Fault(500, "server", after=True)]
    proposal = client.propose("t", "process_refund", REFUND)
    assert proposal.id == "p-1"
    assert len(gate.proposals) == 1


def test_a_lost_claim_is_asked_for_under_its_key(gate, client):
    gate.faults = [Fault(0, after=True), Fault(503, "server", after=True)]
    assert client.redeem("token").fence == 3
    assert len(gate.calls) == 3
    assert len(keys_and_bodies(gate)) == 1


def test_a_claim_is_of_one_call_unless_the_agent_names_it(gate, client):
    client.redeem("token", idempotency_key="order/1")
    assert client.redeem("token", idempotency_key="order/1").fence == 3
    with pytest.raises(ApiError) as caught:
        client.redeem("token")
    assert caught.value.code == "grant_spent"


def test_the_pauses_grow(gate, client, pauses: Pauses):
    gate.faults = [Fault(503, "server")] * 3
    client.propose("t", "process_refund", REFUND)
    first, second, third = pauses.taken
    assert 0.075 <= first <= 0.1
    assert 0.15 <= second <= 0.2
    assert 0.3 <= third <= 0.4


def test_retry_after_is_kept_to_the_letter(gate, client, pauses: Pauses):
    gate.faults = [Fault(429, "too_many", {"Retry-After": "7"})]
    client.propose("t", "process_refund", REFUND)
    assert pauses.taken == [7.0]


def test_a_retry_after_beyond_our_patience_is_raised_at_once(gate, client, pauses):
    gate.faults = [Fault(429, "too_many", {"Retry-After": "3600"})]
    with pytest.raises(ApiError) as caught:
        client.propose("t", "process_refund", REFUND)
    assert caught.value.retry_after == 3600
    assert pauses.taken == []


def test_a_fault_that_stays_is_raised_in_the_end(gate, client):
    gate.faults = [Fault(503, "server")] * 4
    with pytest.raises(ApiError) as caught:
        client.propose("t", "process_refund", REFUND)
    assert caught.value.status == 503
    assert len(gate.calls) == 4


@pytest.mark.parametrize("code", ["grant_spent", "stale_fence"])
def test_other_conflicts_are_not_asked_again(gate, client, code):
    gate.faults = [Fault(409, code)]
    with pytest.raises(ApiError) as caught:
        client.redeem("token")
    assert caught.value.code == code
    assert len(gate.calls) == 1


def test_nobody_there_is_unreachable(pauses: Pauses):
    backoff = Backoff(attempts=2)
    with (
        Gate("http://127.0.0.1:9", KEY, backoff=backoff, sleep=pauses) as client,
        pytest.raises(Unreachable),
    ):
        client.whoami()
    assert len(pauses.taken) == 1


def test_an_answer_that_is_not_json_is_unreachable(gate, client):
    gate.faults = [Fault(200, raw=b"<html>")] * 4
    with pytest.raises(Unreachable):
        client.whoami()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800"])
def test_what_is_not_strict_json_never_leaves(gate, client, value):
    with pytest.raises(ValueError, match=r"JSON|surrogates"):
        client.propose("t", "add_label", {"label": value})
    assert gate.calls == []
