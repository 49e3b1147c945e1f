"""Votes over the versions of one question [I10]."""

from __future__ import annotations

import pytest

from journal import errors
from policies.choices import Role
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose


@pytest.fixture
def request_in_two_steps(gate: Gate) -> ApprovalRequest:
    """It asks one supervisor, and one reviewer more."""
    document = factories.document_of_tests()
    document["steps"]["approve"] = [
        {"role": "supervisor", "required": 1},
        {"role": "reviewer", "required": 1},
    ]
    factories.policy(gate.people, document)
    return propose(gate.agent).request


def test_who_filled_a_step_cannot_fill_another_one(
    gate: Gate, request_in_two_steps: ApprovalRequest
) -> None:
    request = request_in_two_steps
    decide(request, gate.sue)
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.sue)
    decide(request, gate.tom, "escalate")
    request.refresh_from_db()
    version = request.sealed
    assert version.carried == [gate.sue.public_id]
    assert [step["role"] for step in version.steps] == [Role.REVIEWER, Role.SUPERVISOR]
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.sue)
    decide(request, gate.rita)
    decide(request, gate.sam)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED


def test_a_vote_on_an_unfinished_step_is_asked_afresh(gate: Gate) -> None:
    """Two supervisors are needed; one has voted when the other passes it up."""
    for name in ("una", "uri"):
        factories.admitted(name, Role.SUPERVISOR)
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    decide(request, gate.sam, "escalate")
    request.refresh_from_db()
    steps = [(step["role"], step["required"]) for step in request.sealed.steps]
    assert steps == [("supervisor", 2), ("supervisor", 1)]
    assert request.sealed.carried == []
    decide(request, gate.sue)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING


def test_a_revision_voids_every_vote_and_everybody_may_vote_again(
    gate: Gate, request_in_two_steps: ApprovalRequest
) -> None:
    request = request_in_two_steps
    decide(request, gate.sue)
    factories.revise(gate.agent, request.proposal)
    decide(request, gate.sue)
    decide(request, gate.rita)
    request.refresh_from_db()
    assert request.status == RequestStatus.AUTHORIZED
