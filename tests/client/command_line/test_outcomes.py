"""What became of a proposal, in words and as an exit code."""

from __future__ import annotations

from typing import Any

import pytest

from counterseal_client import FINAL_STATUSES, Proposal
from counterseal_client.command_line.outcomes import (
    STATUS_WORDS,
    ExitCode,
    describe_proposal,
    find_exit_code,
)
from tests.guards import ROOT


def describe(**facts: Any) -> str:
    body = {"id": "p-1", "thread": "t-1", "tool": "pay", "status": "pending", **facts}
    proposal = Proposal.model_validate(body)
    return "\n".join(line.text for line in describe_proposal(proposal))


def test_every_status_has_words() -> None:
    assert STATUS_WORDS.keys() == FINAL_STATUSES | {"pending", "granted", "executing"}


def test_every_exit_code_is_documented() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text()
    for code in ExitCode:
        assert f"\n| {code.value} | " in page


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"returned": True}, "revise or withdraw it"),
        ({"may_have_run": True}, "check first"),
        (
            {"messages": [{"from": "reviewer", "kind": "question", "text": "Why?"}]},
            "reviewer, question:\nWhy?",
        ),
        (
            {
                "status": "executed",
                "decision": {"verdict": "modify", "reason_code": "wrong_amount"},
            },
            "Decided with changed arguments: wrong_amount",
        ),
        (
            {
                "status": "failed",
                "execution": {"id": "x-1", "status": "failed", "detail": "No stock."},
            },
            "No stock.",
        ),
    ],
)
def test_what_an_agent_must_know_is_said(facts: dict[str, Any], words: str) -> None:
    assert words in describe(**facts)


def test_a_status_of_a_later_release_is_an_ending() -> None:
    proposal = Proposal(id="p-1", thread="t", tool="pay", status="parked")
    assert find_exit_code(proposal) is ExitCode.ENDED
    assert "pay parked." in describe(status="parked")
