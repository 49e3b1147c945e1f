"""Everything a reviewer approved that has not run is taken back, and only that."""

from __future__ import annotations

from typing import Any

import pytest
from django.core import mail

from agents import representation
from desk.components import retry
from hitl import tasks
from journal import clock, errors, log
from journal.models import LogRecord, OutboxMessage
from notifications.events import NOTICE_TITLES
from policies.choices import Role
from reviews import deadlines
from reviews.choices import ExecutionStatus, GrantStatus, RequestStatus, Scope
from reviews.decisions import revoke as revocations
from reviews.executions import claims, run, settle
from reviews.models import ApprovalRequest, Execution, Grant, Stop
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.states import recall_windows


def revoke(gate: Gate, name: str = "rita", by: str = "sue") -> Stop:
    """The click, and all that the worker makes of it."""
    row = stops.create_stop(
        scope=Scope.REVIEWER,
        key=gate.people[name].public_id,
        person=gate.people[by],
        reason="their account was stolen",
    )
    for message in OutboxMessage.objects.filter(topic="stop.raised", done_at=None):
        tasks.enforce_stop(message.pk)
    return row


def fresh(request: ApprovalRequest) -> ApprovalRequest:
    return ApprovalRequest.objects.get(pk=request.pk)


def open_steps(request: ApprovalRequest) -> list[Any]:
    return list(fresh(request).sealed.steps)


def test_what_is_queued_is_refused_and_its_grant_revoked(gate: Gate) -> None:
    execution = states.queued(gate)
    others = propose(gate.agent, customer="C-2").request
    decide(others, gate.tom)
    revoke(gate)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "approval_revoked")
    assert Grant.objects.get(pk=execution.grant_id).status == GrantStatus.REVOKED
    run.run_execution(execution.pk)
    assert worlds.effects() == []
    assert others.proposal.executions.get().status == ExecutionStatus.QUEUED


def test_what_is_to_be_tried_once_more_is_refused_as_well(gate: Gate) -> None:
    execution = states.requeued(gate)
    row = revoke(gate)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "approval_revoked")
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="found again")
    run.run_execution(execution.pk)
    assert worlds.effects() == []


def test_what_can_be_recalled_is_asked_again_of_others(gate: Gate) -> None:
    request = states.recallable(gate)
    revoke(gate)
    request = fresh(request)
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)
    assert request.sealed.cause == "revoked"
    assert request.recall_until is None
    assert request.expires_at > clock.now()
    ApprovalRequest.objects.filter(pk=request.pk).update(recall_until=None)
    assert deadlines.close_recall_windows() == []
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.rita)
    decide(request, gate.tom)
    assert fresh(request).status == RequestStatus.RECALLABLE


def test_of_two_votes_only_theirs_is_void(gate: Gate) -> None:
    """Two supervisors are asked: one has answered, and is revoked."""
    request = propose(gate.agent, amount="700.00").request
    decide(request, gate.sue)
    revoke(gate, "sue", by="sam")
    assert fresh(request).status == RequestStatus.PENDING
    assert open_steps(request) == [{"role": "supervisor", "required": 2}]
    assert fresh(request).closed_to == []


def test_who_filled_a_step_before_stays_counted_and_only_theirs_is_asked_again(
    gate: Gate,
) -> None:
    """A supervisor's step was added when the reviewer's was complete."""
    factories.admitted("una", Role.SUPERVISOR)
    request = two_steps(gate)
    decide(request, gate.rita)
    decide(request, gate.tom, "escalate", reason_code="unsafe")
    before = fresh(request).sealed
    assert before.carried == [gate.rita.public_id]
    revoke(gate)
    after = fresh(request).sealed
    assert after.carried == []
    assert after.steps == [*before.steps, {"role": "reviewer", "required": 1}]
    assert after.escalated_by == before.escalated_by


def test_the_others_of_complete_steps_are_not_asked_again(gate: Gate) -> None:
    request = two_steps(gate)
    decide(request, gate.rita)
    decide(request, gate.sue)
    revoke(gate, "sue", by="sam")
    version = fresh(request).sealed
    assert version.carried == [gate.rita.public_id]
    assert version.steps == [{"role": "supervisor", "required": 2}]


def two_steps(gate: Gate) -> ApprovalRequest:
    """One reviewer, then two supervisors."""
    document = factories.document_of_tests()
    document["steps"]["approve"] = [
        {"role": "reviewer", "required": 1},
        {"role": "supervisor", "required": 2},
    ]
    factories.policy(gate.people, document)
    return propose(gate.agent).request


def test_what_ran_and_what_others_decided_stays(gate: Gate) -> None:
    done = states.succeeded(gate)
    withdrawn = states.withdrawn(gate)
    rejected = states.rejected(gate)
    waiting = propose(gate.agent, customer="C-9").request
    before = [fresh(one).version for one in (rejected, withdrawn, waiting)]
    revoke(gate)
    done.refresh_from_db()
    assert done.status == ExecutionStatus.SUCCEEDED
    assert [fresh(one).version for one in (rejected, withdrawn, waiting)] == before


def test_a_vote_on_an_older_version_is_no_vote(gate: Gate) -> None:
    recall_windows(gate)
    proposal = propose(gate.agent)
    decide(proposal.request, gate.rita)
    factories.revise(gate.agent, proposal)
    version = fresh(proposal.request).version
    revoke(gate)
    assert fresh(proposal.request).version == version


def test_twice_is_once_and_a_claimed_one_is_left_to_its_checks(gate: Gate) -> None:
    first, second = states.queued(gate), states.claimed(gate)
    revoke(gate)
    for row in (first, second):
        with pytest.raises(errors.AlreadyDecided):
            revocations.revoke_approval(
                proposal_id=row.proposal_id, reviewer=gate.rita.public_id
            )
    kinds = LogRecord.objects.filter(proposal=first.proposal_id, kind="grant.revoked")
    assert kinds.count() == 1
    second.refresh_from_db()
    assert second.status == ExecutionStatus.CLAIMED


def test_what_was_claimed_is_refused_by_its_check(gate: Gate) -> None:
    execution = states.queued(gate)
    claim = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    revoke(gate)
    run._record_conclusion(claim, run._attempt_effect(claim))
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "approver_revoked")
    assert worlds.effects() == []


@pytest.mark.parametrize(
    ("by", "may"),
    [("sue", True), ("adam", True), ("tom", False), ("otto", False), ("owen", False)],
)
def test_who_may_revoke(gate: Gate, by: str, may: bool) -> None:
    if may:
        revoke(gate, by=by)
    else:
        with pytest.raises(errors.NotPermitted):
            revoke(gate, by=by)


def test_nobody_revokes_their_own(gate: Gate) -> None:
    with pytest.raises(errors.NotPermitted):
        revoke(gate, "sue", by="sue")


def test_people_hear_of_it(gate: Gate) -> None:
    execution = states.queued(gate)
    recall_windows(gate)
    asked = propose(gate.agent, customer="C-8").request
    decide(asked, gate.rita)
    revoke(gate)
    for topic in ("request.revoked", "execution.revoked"):
        for message in OutboxMessage.objects.filter(topic=topic):
            tasks.notify_people(message.pk)
    subjects = {(one.to[0], one.subject) for one in mail.outbox}
    gone = f"{NOTICE_TITLES['cancelled']}: pay ({execution.pk})"
    by = f"{asked.expires_at:%Y-%m-%d %H:%M} UTC"
    again = f"{NOTICE_TITLES['revoked']}: pay, high risk, by {by} ({asked.pk})"
    assert ("sue@example.com", gone) in subjects
    assert ("tom@example.com", again) in subjects
    assert ("rita@example.com", again) not in subjects


def test_the_agent_reads_why(gate: Gate) -> None:
    execution = states.queued(gate)
    revoke(gate)
    found = representation.find_proposal("riley", execution.proposal_id)
    assert found is not None
    said = representation.build_proposal_json(found)
    assert said["status"] == "refused"
    assert said["execution"]["code"] == "approval_revoked"


def test_what_they_said_as_the_stop_came_is_taken_back_as_well(gate: Gate) -> None:
    """The task looks until everything is over that was open at its beginning."""
    row = revoke(gate)
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="it was a drill")
    request = propose(gate.agent).request
    decide(request, gate.rita)
    revoke(gate)
    assert Execution.objects.get(proposal=request.proposal_id).code == (
        "approval_revoked"
    )


def test_who_is_switched_on_again_votes_anew(gate: Gate) -> None:
    """What their vote had allowed, and failed, is not tried again on it."""
    execution = states.failed(gate)
    row = revoke(gate)
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="it was nothing")
    assert not retry.find_retryable(gate.tom, [execution.pk], clock.now())
    with pytest.raises(errors.Conflict, match="no longer has the authority"):
        settle.retry_execution(execution_id=execution.pk, person=gate.tom)
    again = propose(gate.agent, customer="C-9").request
    decide(again, gate.rita)
    run.run_execution(again.proposal.executions.get().pk)
    assert len(worlds.effects()) == 1
