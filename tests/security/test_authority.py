"""Ways around the authority that was asked for, each tried and shut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from guardian.shortcuts import remove_perm

from journal import errors
from policies.choices import Tier
from policies.models import Person, Queue
from reviews import permissions
from reviews.choices import RequestStatus, Scope
from reviews.decisions import decide as decisions
from reviews.decisions import preflight, recall
from reviews.decisions.submission import VerdictSubmission
from reviews.models import ApprovalRequest
from reviews.stops import stops
from reviews.tool_services import readers, verifiers
from tests.conftest import Gate
from tests.factories import (
    decide,
    document_of_tests,
    policy,
    propose,
    revise,
    said,
)


def args(amount: str) -> dict[str, Any]:
    return {"customer": "C-1", "amount": amount, "currency": "USD"}


@pytest.fixture
def escalated(gate: Gate) -> ApprovalRequest:
    """A small payment that rita handed up: one reviewer and one supervisor are due."""
    request = propose(gate.agent).request
    decide(request, gate.rita, "escalate")
    request.refresh_from_db()
    return request


def test_a_reviewers_edit_does_not_undo_an_escalation(
    gate: Gate, escalated: ApprovalRequest
) -> None:
    with pytest.raises(errors.PolicyViolation):
        decide(escalated, gate.tom, "modify", args=args("39.00"))
    escalated.refresh_from_db()
    assert (escalated.status, escalated.version) == (RequestStatus.PENDING, 2)
    assert escalated.tier == Tier.ESCALATE


def test_a_reviewers_edit_may_ask_for_more(
    gate: Gate, escalated: ApprovalRequest
) -> None:
    decide(escalated, gate.tom, "modify", args=args("600.00"))
    escalated.refresh_from_db()
    assert escalated.status == RequestStatus.PENDING
    assert escalated.sealed.steps == [{"role": "supervisor", "required": 2}]


def test_a_supervisors_edit_settles_an_escalation(
    gate: Gate, escalated: ApprovalRequest
) -> None:
    decide(escalated, gate.sue, "modify", args=args("39.00"))
    escalated.refresh_from_db()
    assert escalated.status == RequestStatus.AUTHORIZED


def test_an_agents_revision_does_not_undo_an_escalation(
    gate: Gate, escalated: ApprovalRequest
) -> None:
    revise(gate.agent, escalated.proposal, amount="40.01")
    escalated.refresh_from_db()
    assert escalated.tier == Tier.ESCALATE
    steps = escalated.sealed.steps
    assert [step["role"] for step in steps] == ["reviewer", "supervisor"]
    assert escalated.sealed.step_up
    decide(escalated, gate.tom)
    escalated.refresh_from_db()
    assert escalated.status == RequestStatus.PENDING
    decide(escalated, gate.sue)
    escalated.refresh_from_db()
    assert escalated.status == RequestStatus.AUTHORIZED


def test_who_escalated_cannot_vote_on_the_revision(
    gate: Gate, escalated: ApprovalRequest
) -> None:
    revise(gate.agent, escalated.proposal, amount="40.01")
    with pytest.raises(errors.AlreadyEscalated):
        decide(escalated, gate.rita)


def test_a_stopped_reviewer_cannot_switch_themselves_on(gate: Gate) -> None:
    key = gate.sue.public_id
    stop = stops.create_stop(
        scope=Scope.REVIEWER, key=key, person=gate.adam, reason="left"
    )
    with pytest.raises(errors.NotPermitted):
        stops.lift_stop(stop_id=stop.pk, person=gate.sue, reason="me again")
    stops.lift_stop(stop_id=stop.pk, person=gate.sam, reason="cleared")


def test_everything_is_one_switch_whatever_key_is_sent(gate: Gate) -> None:
    stops.create_stop(scope=Scope.EVERYTHING, key="a", person=gate.adam, reason="halt")
    with pytest.raises(errors.Conflict):
        stops.create_stop(
            scope=Scope.EVERYTHING, key="b", person=gate.alma, reason="halt"
        )


def test_a_key_that_no_switch_can_have_is_refused(gate: Gate) -> None:
    with pytest.raises(errors.InvalidInput):
        stops.create_stop(
            scope=Scope.TOOL, key="x" * 201, person=gate.sue, reason="odd"
        )


def _revoke(person: Person) -> None:
    for queue in Queue.objects.all():
        remove_perm("policies.decide", person, queue)


@pytest.mark.parametrize(
    "take_away",
    [
        _revoke,
        lambda person: Person.objects.filter(pk=person.pk).update(is_active=False),
        lambda person: person.groups.clear(),
    ],
)
def test_an_authority_taken_away_meanwhile_is_gone(
    gate: Gate, take_away: Callable[[Person], None]
) -> None:
    """The page was loaded, and what it found out about the person is remembered."""
    request = propose(gate.agent).request
    given = said(request, gate.rita)
    assert (
        permissions.describe_why_cannot_decide(given.person, request, request.sealed)
        == ""
    )
    take_away(gate.rita)
    with pytest.raises(errors.NotPermitted):
        decisions.decide_request(given)
    assert not request.decisions.exists()


def test_nobody_outside_is_asked_for_who_may_not_decide(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = propose(gate.agent).request
    asked: list[str] = []
    monkeypatch.setattr(readers, "read_state", lambda *_, **__: asked.append("reader"))
    monkeypatch.setattr(
        verifiers, "run_verifiers", lambda *_, **__: asked.append("verifier")
    )
    for person in (gate.otto, gate.owen):
        with pytest.raises(errors.NotPermitted):
            decide(request, person, "modify", args=args("39.00"))
    with pytest.raises(errors.StaleVersion):
        decide(request, gate.rita, version=9)
    with pytest.raises(errors.InvalidArgs):
        decide(request, gate.rita, "modify", args={"customer": "C-1"})
    assert asked == []


def test_a_vote_for_a_version_to_come_slips_past_no_verifier(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recall makes the next version of the same bytes: its number can be guessed."""
    document = document_of_tests()
    document["recall"]["high"] = 60
    policy(gate.people, document)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    early = said(request, gate.tom, version=2)
    look = preflight.run_preflight

    def recalled_meanwhile(given: VerdictSubmission) -> Any:
        found = look(given)
        recall.recall_approval(request_id=request.pk, person=gate.rita)
        return found

    monkeypatch.setattr(preflight, "run_preflight", recalled_meanwhile)
    with pytest.raises(errors.Conflict):
        decisions.decide_request(early)
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)
