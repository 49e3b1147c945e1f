"""Attempts of calls by durable workflows. The kit runs them in Temporal, DBOS and
Prefect themselves: `make conformance`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from counterseal_client import ApiError, Gate, GatedTool
from counterseal_client.adapters.attempts import attempt_call, build_request
from tests.client.gate import REJECTION, Fault, LoopbackGate
from tests.client.offline import run_coroutine

NOTE = {"to": "ann", "text": "hello"}


@pytest.fixture
def tool(client: Gate) -> GatedTool[..., Any]:
    @client.tool()
    def send_note(to: str, text: str) -> dict[str, str]:
        """Send a note to a person."""
        raise AssertionError("no effect was approved")

    return send_note


def attempt(tool: GatedTool[..., Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """An attempt, whose request went through a store of JSON."""
    request = build_request("t-1", "call_1", arguments, {"rationale": "It is late."})
    return run_coroutine(attempt_call(tool, json.loads(json.dumps(request))))


def test_a_call_that_waits_names_its_proposal(
    gate: LoopbackGate, tool: GatedTool[..., Any]
) -> None:
    first = attempt(tool, NOTE)
    assert first["waiting"]["tool_call_id"] == "call_1"
    assert attempt(tool, NOTE) == first
    assert list(gate.proposals) == [first["waiting"]["proposal"]]


def test_a_refusal_is_a_text_for_the_model(
    gate: LoopbackGate, tool: GatedTool[..., Any]
) -> None:
    gate.answers["send_note"] = {"status": "rejected", "decision": REJECTION}
    assert "They know." in attempt(tool, NOTE)["text"]
    assert "text: Field required" in attempt(tool, {"to": "ann"})["text"]


def test_an_outage_is_to_be_attempted_again(
    gate: LoopbackGate, tool: GatedTool[..., Any]
) -> None:
    gate.faults = [Fault(503, "busy")] * 4
    assert "503" in attempt(tool, NOTE)["again"]


def test_other_arguments_under_one_id_are_refused_for_good(
    gate: LoopbackGate, tool: GatedTool[..., Any]
) -> None:
    attempt(tool, NOTE)
    with pytest.raises(ApiError) as caught:
        attempt(tool, {**NOTE, "text": "HELLO"})
    assert caught.value.code == "key_reused"


def test_names_are_checked_before_anything_is_proposed() -> None:
    with pytest.raises(ValueError, match="thread is 'a b'"):
        build_request("a b", "call_1", NOTE, None)
    with pytest.raises(ValueError, match="has no id"):
        build_request("t-1", "", NOTE, None)
