"""Undoing what was done: a proposal of its own, by a person who does not decide it."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from agents import proposals, representation, reversals
from agents.choices import ThreadResult
from journal import errors
from journal.models import LogRecord
from policies.choices import Role, Tier
from reviews import permissions
from reviews.alarms import standing
from reviews.choices import ExecutionStatus, RequestStatus, Scope
from reviews.executions import claims, record, run
from reviews.models import (
    Alarm,
    ApprovalRequest,
    Execution,
    Proposal,
    Reversal,
    Stop,
)
from reviews.stops import stops
from reviews.tool_services.executors import build_success
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.executions.attempts import ends

WHY = "The customer was paid by mistake."


def undo(execution: Execution, person: Any, reason: str = WHY) -> Proposal:
    return reversals.propose_reversal(
        execution_id=execution.pk, person=person, reason=reason
    )


def announced(gate: Gate) -> Execution:
    """What ran under NOTIFY; what undoes it would run so as well."""
    execution: Execution = propose(gate.agent, "tag").executions.get()
    run.run_execution(execution.pk)
    return execution


def test_it_is_a_proposal_of_the_same_run_under_every_rule(gate: Gate) -> None:
    paid = states.succeeded(gate)
    proposal = undo(paid, gate.tom)
    args = proposal.current.args
    assert (proposal.tool_name, proposal.agent, proposal.thread) == (
        *("repay", "riley"),
        paid.proposal.thread,
    )
    assert args["note"] == paid.idempotency_key, "which the result had"
    assert args["amount"] == paid.grant.revision.args["amount"]
    assert (proposal.parent, proposal.source) == (paid.proposal_id, "reversal")
    assert proposal.current.policy_id == gate.policy.pk
    assert proposal.request.status == RequestStatus.PENDING
    assert worlds.effects()[-1][0] == "pay", "nothing is undone by proposing it"
    submitted = LogRecord.objects.filter(proposal=proposal.pk).first()
    assert submitted is not None
    assert submitted.actor_id == gate.tom.public_id
    told = LogRecord.objects.get(kind="reversal.proposed")
    assert told.proposal == paid.proposal_id


def test_who_proposed_it_does_not_decide_it(gate: Gate) -> None:
    """I9."""
    request = undo(states.succeeded(gate), gate.tom).request
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.tom)
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED
    assert worlds.effects()[-1][0] == "repay"
    with pytest.raises(errors.Conflict):
        undo(execution, gate.sue)


def test_somebody_approves_it_also_where_the_policy_alone_would_allow_it(
    gate: Gate,
) -> None:
    proposal = undo(announced(gate), gate.tom)
    request = ApprovalRequest.objects.get(proposal=proposal)
    assert proposal.current.tier == Tier.NOTIFY
    assert (request.tier, request.sealed.steps) == (
        "approve",
        [{"role": "reviewer", "required": 1}],
    )
    assert not proposal.executions.exists()


def test_the_agent_reads_it_as_its_own(gate: Gate) -> None:
    paid = states.succeeded(gate)
    proposal = undo(paid, gate.tom)
    decide(proposal.request, gate.rita)
    found = representation.find_proposal(gate.agent.slug, proposal.pk)
    assert found is not None
    described = representation.build_proposal_json(found)
    assert (described["parent"], described["source"]) == (paid.proposal_id, "reversal")
    assert described["decision"]["verdict"] == "approve", "nobody modified it"


def test_no_agent_may_say_that_a_person_proposed(gate: Gate) -> None:
    with pytest.raises(ValueError, match="reserved"):
        factories.proposal_body("pay", source="reversal")


def test_one_at_a_time(gate: Gate) -> None:
    paid = states.succeeded(gate)
    first = undo(paid, gate.tom)
    with pytest.raises(errors.Conflict):
        undo(paid, gate.sue)
    decide(first.request, gate.rita, "reject")
    second = undo(paid, gate.sue)
    assert Reversal.objects.filter(over_at__isnull=True).get().proposal == second
    decide(second.request, gate.rita)
    execution = Execution.objects.get(proposal=second)
    run.run_execution(execution.pk)
    with pytest.raises(errors.Conflict):
        undo(paid, gate.tom)
    third = propose(gate.agent)
    with pytest.raises(IntegrityError), transaction.atomic():
        Reversal.objects.create(
            execution=paid, proposal=third, by="x", at=paid.queued_at
        )


def declined(gate: Gate, paid: Execution) -> Execution:
    """What was to undo a payment, was approved, and failed."""
    worlds.WORLD["declined"] = {"C-1"}
    proposal = undo(paid, gate.tom)
    decide(proposal.request, gate.rita)
    execution = Execution.objects.get(proposal=proposal)
    run.run_execution(execution.pk)
    return execution


def test_what_failed_may_be_tried_again_so_it_counts_until_its_window_ends(
    gate: Gate,
) -> None:
    paid = states.succeeded(gate)
    execution = declined(gate, paid)
    with pytest.raises(errors.Conflict):
        undo(paid, gate.tom)
    ends(execution, "window")
    assert undo(paid, gate.tom).request.status == RequestStatus.PENDING


def test_what_a_late_report_says_happened_is_not_undone_twice(gate: Gate) -> None:
    paid = states.succeeded(gate)
    execution = declined(gate, paid)
    ends(execution, "window")
    record.record_late_report(
        execution_id=execution.pk,
        fence=1,
        action_hash=execution.grant.action_hash,
        outcome=build_success({}),
        actor=claims.EXECUTOR_ACTOR,
    )
    with pytest.raises(errors.Conflict, match="already being undone"):
        undo(paid, gate.tom)
    alarm = Alarm.objects.get(kind="late_report")
    standing.acknowledge_alarm(alarm_id=alarm.pk, person=gate.sue)
    standing.close_alarm(
        alarm_id=alarm.pk, person=gate.sue, note="It is not in the books."
    )
    assert undo(paid, gate.tom).request.status == RequestStatus.PENDING


@pytest.mark.parametrize("status", ["queued", "claimed", "failed", "refused"])
def test_only_what_happened_is_undone(gate: Gate, status: str) -> None:
    execution = states.EXECUTIONS[status](gate)
    with pytest.raises(errors.Conflict):
        undo(execution, gate.tom)


def test_what_declares_nothing_is_not_undone(gate: Gate) -> None:
    execution: Execution = propose(gate.agent, "look").executions.get()
    run.run_execution(execution.pk)
    with pytest.raises(errors.Conflict):
        undo(execution, gate.tom)


def test_a_result_that_lacks_what_is_named_is_told(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "keyed", lambda call: {"other": 1})
    paid = states.succeeded(gate)
    with pytest.raises(errors.InvalidInput, match="result has no done"):
        undo(paid, gate.tom)


@pytest.mark.parametrize("name", ["adam", "otto", "owen"])
def test_who_decides_nothing_proposes_none(gate: Gate, name: str) -> None:
    with pytest.raises(errors.NotPermitted):
        undo(states.succeeded(gate), gate.people[name])


def test_a_reason_is_needed(gate: Gate) -> None:
    with pytest.raises(errors.ReasonMissing):
        undo(states.succeeded(gate), gate.tom, " ")
    assert not Reversal.objects.exists()


def test_a_finished_run_can_be_undone_and_a_stopped_one_cannot(gate: Gate) -> None:
    paid = states.succeeded(gate)
    proposals.finish_thread(
        agent=gate.agent, name=paid.proposal.thread, result=ThreadResult.COMPLETED
    )
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="drill")
    with pytest.raises(errors.Conflict, match="is stopped"):
        undo(paid, gate.tom)
    stops.lift_stop(stop_id=Stop.objects.get().pk, person=gate.sue, reason="over")
    assert undo(paid, gate.tom).request.status == RequestStatus.PENDING


def test_what_the_policy_blocks_is_blocked_and_may_be_asked_again(gate: Gate) -> None:
    paid = states.succeeded(gate)
    gate.agent.risk_ceiling = "low"
    gate.agent.save()
    proposal = undo(paid, gate.tom)
    assert proposal.blocked_by == "agent.risk_ceiling"
    assert Reversal.objects.get().over_at is not None
    gate.agent.risk_ceiling = "critical"
    gate.agent.save()
    assert undo(paid, gate.tom).request.status == RequestStatus.PENDING


def test_an_owner_who_reviews_is_still_barred(gate: Gate) -> None:
    """I9: whose run it was does not decide what undoes it either."""
    gate.owen.groups.add(*gate.rita.groups.all())
    assert Role.REVIEWER in permissions.roles_of(
        type(gate.owen).objects.get(pk=gate.owen.pk)
    )
    proposal = undo(states.succeeded(gate), gate.tom)
    assert {gate.owen.public_id, gate.tom.public_id} <= set(proposal.barred)
