"""The one word that an agent sees is the same in Python and in SQL."""

from __future__ import annotations

import pytest

from agents import representation
from reviews.executions import run
from reviews.models import Proposal
from tests import factories
from tests.conftest import Gate


@pytest.mark.parametrize(
    ("tool", "verdict", "runs", "word"),
    [
        ("pay", "", False, "pending"),
        ("pay", "reject", False, "rejected"),
        ("pay", "approve", False, "granted"),
        ("pay", "approve", True, "executed"),
        ("decline", "approve", True, "failed"),
        ("look", "", False, "granted"),
        ("look", "", True, "executed"),
        ("nowhere", "", False, "blocked"),
    ],
)
def test_both_say_the_same(
    gate: Gate, tool: str, verdict: str, runs: bool, word: str
) -> None:
    proposal = factories.propose(gate.agent, tool)
    if verdict:
        factories.decide(proposal.request, gate.rita, verdict)
    if runs:
        run.run_execution(proposal.executions.get().pk)
    loaded = representation.find_proposal("riley", proposal.pk)
    assert loaded is not None
    annotated = representation.annotate_status(Proposal.objects.all()).get(
        pk=proposal.pk
    )
    assert (
        representation.build_proposal_json(loaded)["status"] == annotated.said == word
    )
