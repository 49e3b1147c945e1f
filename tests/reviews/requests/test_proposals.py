from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents import proposals
from journal import canonical, clock, errors
from journal.models import LogRecord, OutboxMessage
from reviews import deadlines
from reviews.choices import GrantStatus, RequestStatus
from reviews.models import ApprovalRequest, Proposal
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose


def test_a_low_risk_read_is_granted_at_once(gate: Gate) -> None:
    proposal = propose(gate.agent, "look")
    assert proposal.grants.get().status == GrantStatus.LIVE
    assert not ApprovalRequest.objects.exists()


def test_a_payment_waits_with_its_checkpoint_and_its_records(gate: Gate) -> None:
    proposal = propose(gate.agent, checkpoint={"summary": "waits", "resume_at": "pay"})
    assert proposal.request.status == RequestStatus.PENDING
    kinds = LogRecord.objects.filter(proposal=proposal.pk).values_list(
        "kind", flat=True
    )
    assert set(kinds) == {"proposal.submitted", "request.opened"}
    assert OutboxMessage.objects.get().topic == "request.opened"


def test_the_stored_bytes_are_the_canonical_form_and_their_hash(gate: Gate) -> None:
    revision = propose(gate.agent).current
    stored = bytes(revision.canonical)
    assert stored == canonical.encode(canonical.parse(stored))
    assert revision.action_hash == canonical.digest(stored)


def test_an_unknown_tool_is_blocked_and_kept(gate: Gate) -> None:
    proposal = propose(gate.agent, "wire_money", args={"amount": "1.00"})
    assert proposal.blocked_by == "tool.unknown"
    assert not proposal.grants.exists()
    assert LogRecord.objects.filter(kind="proposal.blocked").exists()


def test_an_unknown_argument_is_refused_with_its_path(gate: Gate) -> None:
    args = {"customer": "C-1", "amount": "1.00", "currency": "USD", "colour": "red"}
    with pytest.raises(errors.InvalidArgs) as refused:
        propose(gate.agent, args=args)
    assert "args" in refused.value.errors[0]["path"]
    assert not Proposal.objects.exists()


def test_a_tool_that_is_not_allowed_is_refused(gate: Gate) -> None:
    agent = factories.agent(gate.owen, "small", tools=["look"])
    with pytest.raises(errors.ToolNotAllowed):
        propose(agent)


def test_a_tool_that_demands_a_rationale_gets_one(gate: Gate) -> None:
    with pytest.raises(errors.RationaleMissing):
        propose(gate.agent, "write", rationale=" ")


def test_a_blocked_amount_asks_nobody(gate: Gate) -> None:
    proposal = propose(gate.agent, amount="10000.01")
    assert proposal.blocked_by == "pay.over_10000"


def test_risk_above_the_agents_ceiling_is_blocked(gate: Gate) -> None:
    agent = factories.agent(gate.owen, "careful", risk_ceiling="medium")
    assert propose(agent).blocked_by == "agent.risk_ceiling"


def test_a_split_payment_escalates_whatever_its_own_size(gate: Gate) -> None:
    tiers = [
        propose(gate.agent, amount="49.00", thread=f"t-{n}").request.tier
        for n in range(3)
    ]
    assert tiers == ["approve", "approve", "escalate"]


def test_a_rejected_payment_weighs_no_more(gate: Gate) -> None:
    for n in range(2):
        request = propose(gate.agent, amount="49.00", thread=f"t-{n}").request
        decide(request, gate.rita, "reject")
    again = propose(gate.agent, amount="49.00", thread="t-2")
    assert again.request.tier == "approve"


def test_a_revision_voids_every_vote(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    decide(request, gate.sue)
    factories.revise(gate.agent, request.proposal, amount="890.00")
    request.refresh_from_db()
    assert request.version == 2
    decide(request, gate.sam)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING


def test_supersedes_ends_the_named_request(gate: Gate) -> None:
    old = propose(gate.agent)
    propose(gate.agent, amount="39.00", supersedes=old.pk)
    old.request.refresh_from_db()
    assert old.request.status == RequestStatus.SUPERSEDED


def test_an_agent_supersedes_only_its_own(gate: Gate) -> None:
    """What another agent waits for is answered as what is not there, and waits on."""
    other = factories.agent(gate.owen, "other")
    theirs = propose(other)
    for named in (theirs.pk, "p-00000000000000000000"):
        with pytest.raises(errors.NotFound) as refused:
            propose(gate.agent, amount="39.00", supersedes=named)
        assert refused.value.detail.startswith("supersedes:")
    theirs.request.refresh_from_db()
    assert theirs.request.status == RequestStatus.PENDING
    assert not Proposal.objects.filter(agent=gate.agent.slug).exists()


def test_a_withdrawn_proposal_cannot_be_decided(gate: Gate) -> None:
    request = propose(gate.agent).request
    proposals.withdraw_proposal(agent=gate.agent, proposal_id=request.proposal_id)
    with pytest.raises(errors.RequestWithdrawn):
        decide(request, gate.rita)


def test_who_withdraws_again_changes_nothing(gate: Gate) -> None:
    request = propose(gate.agent).request
    for _ in range(2):
        proposals.withdraw_proposal(agent=gate.agent, proposal_id=request.proposal_id)
    records = LogRecord.objects.filter(kind="request.withdrawn")
    assert records.filter(proposal=request.proposal_id).count() == 1


def test_withdrawing_after_approval_revokes_the_grant(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    proposals.withdraw_proposal(agent=gate.agent, proposal_id=request.proposal_id)
    assert request.proposal.grants.get().status == GrantStatus.REVOKED


def test_too_little_time_is_refused(gate: Gate) -> None:
    with pytest.raises(errors.TooLittleTime):
        propose(gate.agent, expires_in=59)


HALF_HOUR = timedelta(minutes=30)  # the time-out of a payment


def recallable(gate: Gate) -> ApprovalRequest:
    """Approved, and past its deadline while the recall window is open."""
    document = factories.document_of_tests()
    document["recall"]["high"] = 60
    factories.policy(gate.people, document)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    factories.overdue(request)
    return request


def args(amount: str = "41.00") -> dict[str, Any]:
    return {"customer": "C-1", "amount": amount, "currency": "USD"}


def time_left(request: ApprovalRequest) -> timedelta:
    request.refresh_from_db()
    return request.expires_at - clock.now()


def test_a_revision_past_the_deadline_can_still_be_answered(gate: Gate) -> None:
    request = recallable(gate)
    factories.revised(gate.agent, request.proposal, args())
    assert HALF_HOUR - timedelta(minutes=1) < time_left(request) <= HALF_HOUR
    assert deadlines.expire_chunk() == []
    assert request.sealed.expires_at == request.expires_at
    decide(request, gate.tom)


def test_a_revision_while_it_waits_has_its_whole_time_out(gate: Gate) -> None:
    request = propose(gate.agent, expires_in=120).request
    ApprovalRequest.objects.update(reminded_at=clock.now())
    factories.revised(gate.agent, request.proposal, args())
    assert time_left(request) > HALF_HOUR - timedelta(minutes=1)
    assert request.reminded_at is None
    factories.revised(gate.agent, request.proposal, args("42.00"), expires_in=120)
    assert time_left(request) < timedelta(minutes=2)


def test_a_revision_never_goes_beyond_the_first_versions_most(gate: Gate) -> None:
    request = propose(gate.agent).request
    most = clock.now() + timedelta(minutes=5)
    ApprovalRequest.objects.update(expires_at=most, expires_at_most=most)
    factories.revised(gate.agent, request.proposal, args())
    assert time_left(request) <= timedelta(minutes=5)


def test_a_revision_without_time_to_answer_is_refused(gate: Gate) -> None:
    request = recallable(gate)
    soon = clock.now() + timedelta(seconds=30)
    ApprovalRequest.objects.update(expires_at_most=soon)
    with pytest.raises(errors.TooLittleTime):
        factories.revised(gate.agent, request.proposal, args())
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.RECALLABLE, 1)


def test_personal_data_is_redacted_before_it_is_stored(gate: Gate) -> None:
    text = "Write to casey.jones@example.org about it."
    evidence = [{"kind": "message", "text": text}]
    revision = propose(gate.agent, rationale=text, evidence=evidence).current
    assert "casey.jones" not in revision.rationale
    assert "casey.jones" not in str(revision.evidence)
    assert "redacted" in revision.rationale
