"""What came back with a backup is never untouched, refused or lost: it may have run in
the history that is gone (T25)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents import representation
from hitl import tasks
from journal import clock, log, restore_epochs
from journal.errors import Conflict
from reviews import deadlines, recovery
from reviews.alarms import watch
from reviews.choices import AlarmKind, ExecutionStatus, RepairChange
from reviews.executions import (
    claims,
    finish,
    rechecks,
    reconcile,
    redeem,
    repairs,
    run,
    settle,
)
from reviews.grants import grants
from reviews.models import Alarm, ApprovalRequest, Execution, Repair
from reviews.requests import proposals
from reviews.tool_services.executors import build_failure
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.backups import (
    out_of_time,
    queued,
    restored,
    two_people_look,
    weighs,
)
from tests.reviews.executions.attempts import deployment, reported

U = ExecutionStatus.UNKNOWN
pytestmark = pytest.mark.usefixtures("own_note")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tool", "ran_before", "status", "effects"),
    [
        ("pay", True, ExecutionStatus.SUCCEEDED, 1),
        ("pay", False, ExecutionStatus.SUCCEEDED, 1),
        ("pay_queryable", True, ExecutionStatus.SUCCEEDED, 1),
        ("pay_queryable", False, ExecutionStatus.SUCCEEDED, 1),
        ("pay_opaque", True, ExecutionStatus.UNKNOWN, 1),
        ("pay_opaque", False, ExecutionStatus.UNKNOWN, 0),
    ],
)
def test_what_came_back_is_never_untouched(
    gate: Gate, tool: str, ran_before: bool, status: str, effects: int
) -> None:
    execution = queued(gate, tool)
    if ran_before:  # in the history that is lost
        definition = execution.tool_definition
        perform = worlds.keyed if tool == "pay" else worlds.plain
        perform(claims.Claim(execution, definition, 1, untouched=True).call)
    restored(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, len(worlds.effects())) == (status, effects)
    if status == U:
        assert execution.code == "restored"


@pytest.mark.django_db
def test_what_was_claimed_is_unknown_and_is_never_said_to_be_refused(
    gate: Gate,
) -> None:
    claimed, closed = queued(gate), queued(gate, "pay_queryable")
    claims.claim_execution(execution_id=claimed.pk, actor=log.SYSTEM)
    restored(gate)
    closed.refresh_from_db()
    finish.refuse_execution(closed, rechecks.AFTER_WINDOW, clock.now())
    for execution in (claimed, closed):
        execution.refresh_from_db()
        assert (execution.status, execution.code) == (U, "restored")


@pytest.mark.django_db
@pytest.mark.parametrize("looked", [False, True], ids=["waiting", "begun"])
def test_what_is_taken_back_after_a_restore_may_have_happened_and_weighs_on(
    gate: Gate, looked: bool
) -> None:
    withdrawn, stopped = queued(gate), queued(gate, "pay_queryable")
    asked = propose(gate.agent, thread="t-8").request
    restored(gate, looked=looked)
    states.withdraw(gate.agent, withdrawn.proposal)
    states.withdraw(gate.agent, asked.proposal)
    proposals.withdraw_stopped_proposal(proposal_id=stopped.proposal_id, code="stopped")
    for execution in (withdrawn, stopped):
        execution.refresh_from_db()
        assert (execution.status, execution.code) == (U, "restored")
    asked.refresh_from_db()
    assert asked.status == "withdrawn"
    for row in (withdrawn, asked):
        assert weighs(row.proposal_id) == {True}


@pytest.mark.django_db
def test_nothing_expires_while_nobody_can_decide_and_then_it_has_its_time_again(
    gate: Gate,
) -> None:
    """It may have been approved, and have run, in the history that is lost."""
    late, soon = (propose(gate.agent, thread=f"t-{n}").request for n in (8, 9))
    whole = soon.expires_at - soon.opened_at
    restored(gate, looked=False)
    for name in ("opened_at", "expires_at", "expires_at_most"):
        setattr(late, name, getattr(late, name) - timedelta(days=2))
    late.save()
    assert tasks.expire_due() == 0
    two_people_look(gate)
    restore_epochs.accept_epoch()
    began = restore_epochs.last_status.restores[-1][1]
    assert began is not None
    assert tasks.expire_due() == 0
    for request in (late, soon):
        request.refresh_from_db()
        assert request.status == "pending"
        assert request.expires_at_most >= request.expires_at
        assert request.expires_at >= began + whole
    factories.overdue(late)
    assert tasks.expire_due() == 1
    assert weighs(late.proposal_id) == {True}
    assert told(gate, late)["may_have_run"]


@pytest.mark.django_db
def test_what_ended_before_the_backup_and_after_the_epoch_ended_for_good(
    gate: Gate,
) -> None:
    before = propose(gate.agent).request
    decide(before, gate.rita, "reject", reason_code="unsafe")
    restored(gate)
    after = propose(gate.agent, thread="t-2").request
    decide(after, gate.rita, "reject", reason_code="unsafe")
    for request in (before, after):
        assert not told(gate, request)["may_have_run"]


def told(gate: Gate, request: ApprovalRequest) -> dict[str, Any]:
    """What its agent reads of it."""
    proposal = representation.find_proposal(gate.agent.slug, request.proposal_id)
    assert proposal is not None
    return representation.build_proposal_json(proposal)


@pytest.mark.django_db
@pytest.mark.parametrize("tool", ["pay", "pay_queryable", "pay_opaque"])
def test_what_was_changed_since_is_a_question_for_people(gate: Gate, tool: str) -> None:
    """The version before it may have run under its own key; a look-up by the new one
    finds nothing of that."""
    request = propose(gate.agent, tool).request
    ran = grants.compute_idempotency_key(request.proposal_id, request.action_hash)
    restored(gate)
    factories.revise(gate.agent, request.proposal, amount="8.00")
    request.refresh_from_db()
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    assert execution.idempotency_key != ran
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == (U, "other_version")
    assert execution.ask_at is None
    if tool == "pay_queryable":
        reconcile.look_up_for_person(execution.pk, gate.sue)
        execution.refresh_from_db()
        assert execution.status == U, "what it says of these bytes settles nothing"
    assert worlds.effects() == []


@pytest.mark.django_db
@pytest.mark.parametrize("revised", [False, True])
def test_what_people_know_did_not_happen_can_be_tried_again(
    gate: Gate, revised: bool
) -> None:
    request = propose(gate.agent, "pay_opaque").request
    restored(gate)
    if revised:
        factories.revise(gate.agent, request.proposal, amount="8.00")
        request.refresh_from_db()
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    run.run_execution(execution.pk)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=False, reason="the books"
    )
    settle.retry_execution(execution_id=execution.pk, person=gate.sue)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, len(worlds.effects())) == ("succeeded", 1)


@pytest.mark.django_db
def test_what_was_asked_before_the_restore_and_is_rejected_weighs_on(
    gate: Gate,
) -> None:
    request = propose(gate.agent).request
    restored(gate)
    decide(request, gate.rita, "reject", reason_code="unsafe")
    again = propose(gate.agent, thread="t-2").request
    decide(again, gate.rita, "reject", reason_code="unsafe")
    assert weighs(request.proposal_id) == {True}
    assert weighs(again.proposal_id) == {False}


@pytest.mark.django_db
@pytest.mark.parametrize("looked", [False, True], ids=["waiting", "begun"])
def test_two_people_who_mend_what_came_back_read_that_it_may_have_run(
    gate: Gate, looked: bool
) -> None:
    execution = out_of_time(gate)
    restored(gate, looked=looked)
    repair = mend(execution, gate)
    repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)
    execution.refresh_from_db()
    after = {name: repair.after[name] for name in ("status", "grant")}
    assert after == {"status": execution.status, "grant": execution.grant.status}
    assert execution.status == U


@pytest.mark.django_db
def test_what_is_approved_after_the_restore_but_was_asked_before_is_doubted(
    gate: Gate,
) -> None:
    request: ApprovalRequest = propose(gate.agent, "pay_opaque").request
    restored(gate)
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, worlds.effects()) == (U, [])
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=True, reason="the books"
    )


@pytest.mark.django_db
def test_what_is_proposed_in_the_new_epoch_runs_as_ever(gate: Gate) -> None:
    propose(gate.agent)
    restored(gate)
    request = propose(gate.agent, "pay_opaque", thread="t-9").request
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


@pytest.mark.django_db
@pytest.mark.parametrize("looked", [False, True], ids=["waiting", "begun"])
def test_nobody_says_that_what_came_back_never_ran(gate: Gate, looked: bool) -> None:
    execution = out_of_time(gate)
    restored(gate, looked=looked)
    watch.sweep_alarms()
    assert not Alarm.objects.filter(kind=AlarmKind.NEVER_EXECUTED).exists()
    own = out_of_time(gate) if looked else None
    watch.sweep_alarms()
    found = Alarm.objects.filter(kind=AlarmKind.NEVER_EXECUTED)
    assert [one.subject for one in found] == ([own.pk] if own else [])
    assert execution.pk not in {one.subject for one in found}


@pytest.mark.django_db
def test_a_repair_that_would_make_something_else_of_it_now_is_proposed_anew(
    gate: Gate,
) -> None:
    repair = mend(out_of_time(gate), gate)
    assert repair.after["status"] == "refused"
    restored(gate)
    with pytest.raises(Conflict):
        repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)


def mend(execution: Execution, gate: Gate) -> Repair:
    never_run = RepairChange.NEVER_RUN
    return repairs.propose_repair(
        execution_id=execution.pk, change=never_run, person=gate.sue, reason="Stuck."
    )


@pytest.mark.django_db
@pytest.mark.parametrize("end", ["window", "stop", "withdrawn"])
def test_what_was_changed_since_and_never_began_is_that_question_too(
    gate: Gate, end: str
) -> None:
    """And no look-up by its own key answers it."""
    request = propose(gate.agent, "pay_queryable").request
    restored(gate)
    factories.revise(gate.agent, request.proposal, amount="8.00")
    request.refresh_from_db()
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)
    if end == "window":
        finish.refuse_execution(execution, rechecks.AFTER_WINDOW, clock.now())
    elif end == "stop":
        proposals.withdraw_stopped_proposal(
            proposal_id=request.proposal_id, code="stopped"
        )
    else:
        states.withdraw(gate.agent, request.proposal)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == (U, "other_version")
    reconcile.look_up_for_person(execution.pk, gate.sue)
    execution.refresh_from_db()
    assert (execution.status, execution.ask_at) == (U, None)


@pytest.mark.django_db
def test_a_grant_that_is_not_taken_after_a_restore_is_no_end_either(gate: Gate) -> None:
    execution, token = deployment(gate)
    restored(gate)
    claim = redeem.redeem_grant(token=token, agent="riley")
    reported(execution, claim.fence, build_failure("grant_unknown_key", ""))
    execution.refresh_from_db()
    assert (execution.status, execution.code) == (U, "grant_unknown_key")


@pytest.mark.django_db
def test_what_is_withdrawn_while_two_people_have_not_looked_may_have_run(
    gate: Gate,
) -> None:
    """And so it stays, also after another restore."""
    request = propose(gate.agent).request
    restored(gate, looked=False)
    for _ in range(2):  # noticed, and seen to be by this process
        recovery.watch_for_restore()
    states.withdraw(gate.agent, request.proposal)
    assert told(gate, request)["may_have_run"]
    two_people_look(gate)
    restore_epochs.accept_epoch()
    assert told(gate, request)["may_have_run"]
    restored(gate)
    assert told(gate, request)["may_have_run"]


@pytest.mark.django_db
def test_a_reminder_comes_when_a_fifth_of_the_time_given_anew_is_left(
    gate: Gate,
) -> None:
    request = propose(gate.agent).request
    for name in ("opened_at", "expires_at", "expires_at_most"):
        setattr(request, name, getattr(request, name) - timedelta(days=2))
    request.save()
    restored(gate)
    assert deadlines.enqueue_reminders() == 0
    request.refresh_from_db()
    whole = request.expires_at - request.opened_at - request.frozen_for
    ApprovalRequest.objects.filter(pk=request.pk).update(
        opened_at=request.opened_at - whole * 0.9,
        expires_at=request.expires_at - whole * 0.9,
    )
    assert deadlines.enqueue_reminders() == 1
