"""Answers to the interrupts that LangGraph and LangChain really raise. They were
recorded from the real packages (counterseal_conformance.recording), since these
tests run without them. The kit runs the adapters in the packages themselves: `make
conformance`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counterseal_client import Gate
from counterseal_client.adapters.interrupts import (
    build_answer,
    describe_question,
    list_proposals,
    names_question,
)
from tests.client.gate import GRANTED, REJECTION, LoopbackGate, proposal

RECORDED = Path(__file__).parent / "recorded"


def load_values(variant: str) -> list[Any]:
    values: list[Any] = json.loads((RECORDED / f"{variant}.json").read_text())["values"]
    return values


def wait_for_people(gate: LoopbackGate, value: Any, **facts: Any) -> None:
    """Let the proposals of an interrupt wait at the gate, or be in another state."""
    for name in list_proposals(value):
        asked = {"thread": "t-1", "tool": "send_note"}
        gate.proposals[name] = {**proposal(name, asked), **facts}


@pytest.mark.parametrize(
    "variant", ["langgraph", "langchain-batched", "langchain-per-call"]
)
def test_a_call_that_nobody_decided_has_no_answer(
    gate: LoopbackGate, client: Gate, variant: str
) -> None:
    value = load_values(variant)[0]
    wait_for_people(gate, value)
    assert len(list_proposals(value)) == 1
    assert build_answer(value, client) is None


def test_the_adapters_own_interrupt_is_only_woken(
    gate: LoopbackGate, client: Gate
) -> None:
    (value,) = load_values("langgraph")
    wait_for_people(gate, value, status="rejected", decision=REJECTION)
    assert build_answer(value, client) == {"proposal": value["proposal"]}


def test_a_single_call_gets_its_own_decision(gate: LoopbackGate, client: Gate) -> None:
    note, misfit = load_values("langchain-per-call")
    wait_for_people(gate, note, **GRANTED)
    assert build_answer(note, client) == {"type": "approve"}
    refused = build_answer(misfit, client)
    assert refused["type"] == "reject"
    assert "count: Input should be a valid integer" in refused["message"]


def test_a_batch_has_as_many_decisions_as_calls_in_their_order(
    gate: LoopbackGate, client: Gate
) -> None:
    (value,) = load_values("langchain-batched")
    wait_for_people(gate, value, **GRANTED)
    decisions = build_answer(value, client)["decisions"]
    assert [decision["type"] for decision in decisions] == ["approve", "reject"]
    assert len(decisions) == len(value["action_requests"])


def test_an_edit_is_sent_as_an_approval(gate: LoopbackGate, client: Gate) -> None:
    """The edited arguments reach the tool with its grant, so the middleware is never
    told a tool's name."""
    note, _ = load_values("langchain-per-call")
    edited = {"verdict": "modify", "final_args": {"to": "ann", "text": "hi"}}
    wait_for_people(gate, note, **GRANTED, decision=edited)
    assert build_answer(note, client) == {"type": "approve"}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"status": "rejected", "decision": REJECTION}, "They know."),
        ({"status": "rejected"}, "A reviewer rejected it"),
        ({"status": "expired"}, "Nobody decided in time"),
        ({"status": "unknown"}, "Nobody can say yet"),
        ({"returned": True}, "A person sent it back"),
    ],
)
def test_a_refusal_always_carries_a_text(
    gate: LoopbackGate, client: Gate, facts: dict[str, Any], words: str
) -> None:
    note, _ = load_values("langchain-per-call")
    wait_for_people(gate, note, **facts)
    answer = build_answer(note, client)
    assert answer["type"] == "reject"
    assert words in answer["message"]


@pytest.mark.parametrize(
    "value",
    ["yes", None, {}, {"type": "tool_approval", "description": "Please approve p-1"}],
)
def test_the_interrupt_of_somebody_else_is_left_alone(
    gate: LoopbackGate, client: Gate, value: Any
) -> None:
    assert build_answer(value, client) is None
    assert list_proposals(value) == []
    assert gate.calls == []


def test_a_question_wakes_the_graph_once_it_has_ended(
    gate: LoopbackGate, client: Gate
) -> None:
    asked = client.open_question("refunds", {"type": "object"}, "How?")
    value = describe_question(asked)
    assert names_question(value)
    assert build_answer(value, client) is None
    gate.question_facts = {"status": "answered", "answer": {}}
    assert build_answer(value, client) == {"question": asked.id}
