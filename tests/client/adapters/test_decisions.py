"""What the gate says of the calls that frameworks really keep as waiting. Their runs
were recorded from the real packages (counterseal_conformance.recording)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from counterseal_client import Gate
from counterseal_client.adapters.decisions import (
    WAITING_TYPE,
    PlainException,
    are_all_ready,
    collect_decisions,
    names_proposal,
)
from tests.client.gate import GRANTED, REJECTION, LoopbackGate, proposal

RECORDED = Path(__file__).parent / "recorded"


def load_waiting(variant: str) -> dict[str, Any]:
    """The recorded calls that wait, by their ids."""
    values = json.loads((RECORDED / f"{variant}.json").read_text())["values"]
    return {value["tool_call_id"]: value for value in values}


def keep_proposals(gate: LoopbackGate, waiting: dict[str, Any], **facts: Any) -> None:
    """Let the proposals of these calls be at the gate, in this state."""
    for value in waiting.values():
        asked = {"thread": "t-1", "tool": "send_note"}
        gate.proposals[value["proposal"]] = {
            **proposal(value["proposal"], asked),
            **facts,
        }


@pytest.fixture(
    params=[
        "agent-framework",
        "ag-ui",
        "agno",
        "autogen",
        "claude-agent-sdk",
        "crewai",
        "dbos",
        "deepagents",
        "google-adk",
        "haystack",
        "humanlayer",
        "langchain-classic",
        "langgraph",
        "llama-index",
        "mastra",
        "prefect",
        "pydantic-ai",
        "restate",
        "semantic-kernel",
        "smolagents",
        "strands",
        "temporal",
    ]
)
def waiting(request: pytest.FixtureRequest) -> dict[str, Any]:
    return load_waiting(request.param)


@dataclass
class RunPaused(PlainException):
    waiting: list[str]
    nested: dict[str, str]


def test_a_paused_run_is_kept_as_json() -> None:
    paused = RunPaused(["p-1"], {"call_1": "inner"})
    kept = json.loads(json.dumps(paused.to_dict()))
    assert kept == {"waiting": ["p-1"], "nested": {"call_1": "inner"}}
    assert RunPaused.from_dict(kept) == paused


def test_a_call_that_nobody_decided_has_no_decision(
    gate: LoopbackGate, client: Gate, waiting: dict[str, Any]
) -> None:
    keep_proposals(gate, waiting)
    assert collect_decisions(waiting, client) == {}


def test_an_approved_call_can_run_and_says_who_decided(
    gate: LoopbackGate, client: Gate, waiting: dict[str, Any]
) -> None:
    approval = {"verdict": "approve", "by_role": "reviewer"}
    keep_proposals(gate, waiting, **GRANTED, decision=approval)
    found = collect_decisions(waiting, client)
    assert found.keys() == waiting.keys()
    assert {(call.refusal, call.by) for call in found.values()} == {("", "reviewer")}
    proposals = {value["proposal"] for value in waiting.values()}
    assert {call.proposal for call in found.values()} == proposals


def test_a_grant_without_a_person_is_the_policys(
    gate: LoopbackGate, client: Gate, waiting: dict[str, Any]
) -> None:
    keep_proposals(gate, waiting, **GRANTED)
    assert {call.by for call in collect_decisions(waiting, client).values()} == {
        "policy"
    }


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"status": "rejected", "decision": REJECTION}, "They know."),
        ({"status": "rejected"}, "A reviewer rejected it"),
        ({"status": "expired"}, "Nobody decided in time"),
        ({"returned": True}, "A person sent it back"),
    ],
)
def test_a_refusal_always_carries_a_text(
    gate: LoopbackGate,
    client: Gate,
    waiting: dict[str, Any],
    facts: dict[str, Any],
    words: str,
) -> None:
    keep_proposals(gate, waiting, **facts)
    for call in collect_decisions(waiting, client).values():
        assert words in call.refusal


def test_all_calls_are_ready_when_the_last_one_is(
    gate: LoopbackGate, client: Gate, waiting: dict[str, Any]
) -> None:
    keep_proposals(gate, waiting, **GRANTED)
    other = {"type": WAITING_TYPE, "proposal": "p-other", "tool_call_id": "other"}
    calls = [*waiting.values(), other]
    keep_proposals(gate, {"other": other})
    assert not are_all_ready(calls, client)
    keep_proposals(gate, {"other": other}, status="expired")
    assert are_all_ready(calls, client)


def test_only_the_first_decision_is_waited_for(
    gate: LoopbackGate, client: Gate
) -> None:
    waiting = {
        name: {"type": WAITING_TYPE, "proposal": name, "tool_call_id": name}
        for name in ("p-1", "p-2")
    }
    keep_proposals(gate, waiting)
    gate.facts_at_wait = {"p-1": GRANTED, "p-2": GRANTED}
    assert list(collect_decisions(waiting, client, wait_seconds=5)) == ["p-1"]
    assert "p-2" in gate.facts_at_wait


@pytest.mark.parametrize("value", ["yes", None, {}, {"proposal": "p-1"}])
def test_a_value_of_somebody_else_is_left_alone(
    gate: LoopbackGate, client: Gate, value: Any
) -> None:
    assert not names_proposal(value)
    assert collect_decisions({"call_1": value}, client) == {}
    assert gate.calls == []
