"""What an agent's proposal is judged by."""

from __future__ import annotations

import pytest

from agents import intake, proposals
from agents.models import IdempotencyKey
from reviews.models import Proposal
from tests import factories
from tests.conftest import Gate

pytestmark = pytest.mark.django_db


def test_a_policy_that_is_activated_meanwhile_governs(gate: Gate) -> None:
    factories.propose(gate.agent, thread="t-0")
    body = factories.proposal_body()
    asked = intake.build_proposal_input(gate.agent, body)
    other = factories.policy(gate.people)
    key = intake.parse_call_key("key-own", "POST", "/proposals", body.model_dump())
    stored = proposals.propose_action(agent=gate.agent, key=key, asked=asked)
    revision = Proposal.objects.get(pk=stored.proposal).current
    assert asked.policy == gate.policy
    assert revision.policy == other
    assert revision.facts["sum"]["paid"] == 8000
    assert IdempotencyKey.objects.get(key="key-own").proposal == stored.proposal
    assert Proposal.objects.count() == 2
