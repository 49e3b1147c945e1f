from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from journal import clock, errors, log
from policies.models import Observation
from reviews import claims, executions, grants, settlements, stops
from reviews.choices import ExecutionStatus, GrantStatus, Scope, StopMode
from reviews.executors import KnownFailure, Outcome
from reviews.models import Decision, Execution, Grant, Revision
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose

MOST_ATTEMPTS = 5  # of a tool that says nothing else


def granted(gate: Gate, tool: str = "pay", **fields: Any) -> Execution:
    """An execution that one reviewer has just authorised."""
    request = propose(gate.agent, tool, **fields).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def test_a_run_performs_the_effect_once_and_records_it(gate: Gate) -> None:
    execution = granted(gate)
    executions.run(execution.pk)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED
    assert execution.grant.status == GrantStatus.SPENT
    assert len(worlds.effects()) == 1
    assert executions.result_of(execution) == {"done": execution.idempotency_key}


def test_auto_and_notify_run_without_a_person(gate: Gate) -> None:
    for tool in ("look", "tag"):
        proposal = propose(gate.agent, tool)
        execution = proposal.executions.get()
        executions.run(execution.pk)
        execution.refresh_from_db()
        assert execution.status == ExecutionStatus.SUCCEEDED


def test_a_known_failure_is_failed_and_weighs_no_more(gate: Gate) -> None:
    execution = granted(gate, "decline")
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("failed", "declined")
    assert Observation.objects.filter(measure="event:failure").count() == 1


def test_a_person_retries_a_known_failure_under_the_same_key(gate: Gate) -> None:
    execution = granted(gate, "decline")
    executions.run(execution.pk)
    settlements.retry(execution_id=execution.pk, person=gate.sue)
    execution.refresh_from_db()
    key = execution.idempotency_key
    assert execution.status == ExecutionStatus.QUEUED
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.idempotency_key, execution.attempts) == (key, 2)


@pytest.mark.parametrize("tool", ["pay", "pay_queryable"])
def test_a_lapsed_lease_is_taken_over_and_the_effect_stays_one(
    gate: Gate, tool: str
) -> None:
    execution = granted(gate, tool)
    claim = claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    worlds.keyed(claim.call) if tool == "pay" else worlds.plain(claim.call)
    factories.lapsed(execution)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.fence) == (ExecutionStatus.SUCCEEDED, 2)
    assert len(worlds.effects()) == 1


def test_a_lapsed_lease_of_an_opaque_tool_is_unknown(gate: Gate) -> None:
    execution = granted(gate, "pay_opaque")
    claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.UNKNOWN
    assert worlds.effects() == []


@pytest.mark.parametrize("ran", [True, False])
@pytest.mark.parametrize("end", ["window", "attempts"])
def test_what_can_be_looked_up_is_before_it_is_unknown(
    gate: Gate, ran: bool, end: str
) -> None:
    execution = granted(gate, "pay_queryable")
    claim = claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    if ran:
        worlds.plain(claim.call)
    factories.lapsed(execution)
    code = ends(execution, end)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ("succeeded" if ran else "refused")
    assert execution.code == ("" if ran else code)
    assert len(worlds.effects()) == ran, "nothing is begun any more"


def ends(execution: Execution, end: str) -> str:
    """Let its window be over, or its attempts; the code that says so."""
    if end == "window":
        past = execution.queued_at - timedelta(seconds=1)
        Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
        return "window_closed"
    most = MOST_ATTEMPTS
    Execution.objects.filter(pk=execution.pk).update(attempts=most)
    return "tried_out"


@pytest.mark.parametrize("end", ["window", "attempts"])
def test_a_look_up_without_an_answer_is_unknown(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    execution = granted(gate, "pay_queryable")
    claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    ends(execution, end)
    monkeypatch.setattr(worlds, "find", lambda call: {"status": "who knows"})
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("unknown", "ambiguous")


def test_who_dies_of_every_look_up_is_not_followed_for_ever(gate: Gate) -> None:
    execution = granted(gate, "pay_queryable")
    ends(execution, "attempts")
    for _ in range(MOST_ATTEMPTS + 2):
        claims.take(execution_id=execution.pk, actor=claims.EXECUTOR)
        factories.lapsed(execution) if claimed(execution) else None
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.UNKNOWN


def claimed(execution: Execution) -> bool:
    execution.refresh_from_db()
    return execution.status == ExecutionStatus.CLAIMED


def test_a_stale_fence_cannot_record(gate: Gate) -> None:
    execution = granted(gate)
    first = claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    assert first is not None
    with pytest.raises(errors.StaleFence):
        executions.record(
            execution_id=execution.pk,
            fence=first.fence,
            outcome=Outcome("succeeded", {}),
            actor=log.SYSTEM,
        )


def test_a_held_lease_is_not_taken(gate: Gate) -> None:
    execution = granted(gate)
    claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    assert claims.take(execution_id=execution.pk, actor=log.SYSTEM) is None


def test_after_its_window_an_execution_is_refused(gate: Gate) -> None:
    execution = granted(gate)
    past = execution.queued_at - timedelta(seconds=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "window_closed")
    assert execution.grant.status == GrantStatus.EXPIRED


def test_a_stopped_tool_does_not_run(gate: Gate) -> None:
    execution = granted(gate)
    stops.stop(scope=Scope.TOOL, key="pay", person=gate.sue, reason="wrong payee")
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "stopped")
    assert worlds.effects() == []


def test_a_stop_between_claim_and_effect_is_honoured(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = granted(gate)
    take = claims.take

    def take_then_stop(**given: Any) -> Any:
        claim = take(**given)
        stops.stop(scope=Scope.EVERYTHING, person=gate.adam, reason="halt")
        return claim

    monkeypatch.setattr(claims, "take", take_then_stop)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "stopped")
    assert worlds.effects() == []


def test_a_paused_thread_keeps_its_execution_queued(gate: Gate) -> None:
    execution = granted(gate)
    stop = stops.stop(
        scope=Scope.THREAD,
        key="riley/t-1",
        mode=StopMode.PAUSED,
        person=gate.rita,
        reason="look first",
    )
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.QUEUED
    stops.lift(stop_id=stop.pk, person=gate.sue, reason="fine")
    executions.run(execution.pk)
    assert len(worlds.effects()) == 1


def test_an_approver_who_lost_the_role_blocks_the_effect(gate: Gate) -> None:
    execution = granted(gate)
    gate.rita.groups.clear()
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "approver_revoked")


def test_a_tightened_policy_blocks_the_effect(gate: Gate) -> None:
    execution = granted(gate)
    stricter = factories.document_of_tests()
    stricter["rules"][0]["when"] = "args.amount > 1000"
    factories.policy(gate.people, stricter)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "policy_tightened")


def test_a_changed_record_blocks_the_effect(gate: Gate) -> None:
    execution = granted(gate)
    worlds.WORLD["preconditions"] = {"row_version": 2}
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "precondition")


def test_no_bytes_but_the_approved_ones_run(gate: Gate) -> None:
    """I18: whoever writes other bytes past the trigger still performs nothing."""
    execution = granted(gate)
    revision = execution.grant.revision
    worlds.rewrite(Revision, revision.pk, canonical=b'{"args":{"amount":"1"}}')
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "bytes_changed")
    assert worlds.effects() == []


def test_an_unknown_outcome_is_settled_by_a_supervisor(gate: Gate) -> None:
    execution = granted(gate, "pay_opaque")
    claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    executions.run(execution.pk)
    with pytest.raises(errors.NotYours):
        settlements.settle_unknown(
            execution_id=execution.pk, person=gate.rita, happened=True, reason="seen"
        )
    settlements.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=True, reason="seen"
    )
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


def test_the_agent_redeems_once(gate: Gate) -> None:
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    token = grants.token(execution.grant_id)
    claim = settlements.redeem(token=token, agent="riley")
    assert claim.call.args == {"ref": "v1"}
    with pytest.raises(errors.GrantSpent):
        settlements.redeem(token=token, agent="riley")
    with pytest.raises(errors.NotFound):
        settlements.redeem(token=token, agent="somebody-else")


def test_after_a_lapsed_lease_the_agent_redeems_again(gate: Gate) -> None:
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    token = grants.token(execution.grant_id)
    first = settlements.redeem(token=token, agent="riley")
    factories.lapsed(execution)
    again = settlements.redeem(token=token, agent="riley")
    assert again.fence == first.fence + 1
    assert again.call.idempotency_key == first.call.idempotency_key


SWITCHES = [
    (StopMode.PAUSED, errors.Conflict),
    (StopMode.STOPPED, errors.AgentStopped),
]


def deployment(gate: Gate) -> tuple[Execution, str]:
    """An effect that its agent may redeem, and the token."""
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    return execution, grants.token(execution.grant_id)


def switch(gate: Gate, mode: StopMode) -> Callable[[], object]:
    """Switch the tool off; call what is returned to switch it on again."""
    row = stops.stop(
        scope=Scope.TOOL, key="deploy", mode=mode, person=gate.sue, reason="wait"
    )
    return partial(stops.lift, stop_id=row.pk, person=gate.sam, reason="go on")


@pytest.mark.parametrize(("mode", "refusal"), SWITCHES)
def test_a_redeem_that_a_switch_refuses_is_no_attempt(
    gate: Gate, mode: StopMode, refusal: type[errors.DomainError]
) -> None:
    execution, token = deployment(gate)
    first = settlements.redeem(token=token, agent="riley")
    factories.lapsed(execution)
    lift = switch(gate, mode)
    for _ in range(MOST_ATTEMPTS):
        with pytest.raises(refusal):
            settlements.redeem(token=token, agent="riley")
    lift()
    again = settlements.redeem(token=token, agent="riley")
    assert (again.fence, again.execution.attempts) == (first.fence + 1, 2)


@pytest.mark.parametrize(("mode", "refusal"), SWITCHES)
@pytest.mark.parametrize("lapsed", [False, True])
def test_a_switch_that_comes_during_a_redeem_takes_no_attempt(
    gate: Gate,
    monkeypatch: pytest.MonkeyPatch,
    mode: StopMode,
    refusal: type[errors.DomainError],
    lapsed: bool,
) -> None:
    execution, token = deployment(gate)
    if lapsed:
        settlements.redeem(token=token, agent="riley")
        factories.lapsed(execution)
    take = claims.take

    def take_then_switch(**given: Any) -> Any:
        claim = take(**given)
        switch(gate, mode)
        return claim

    monkeypatch.setattr(claims, "take", take_then_switch)
    with pytest.raises(refusal):
        settlements.redeem(token=token, agent="riley")
    execution.refresh_from_db()
    refused = mode is StopMode.STOPPED and not lapsed
    assert execution.status == (
        "refused" if refused else "claimed" if lapsed else "queued"
    )
    assert execution.attempts == (1 if lapsed or refused else 0)


def test_a_pause_does_not_wear_out_what_a_dead_worker_left(gate: Gate) -> None:
    execution = granted(gate)
    claims.take(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    row = stops.stop(
        scope=Scope.TOOL,
        key="pay",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="wait",
    )
    for _ in range(MOST_ATTEMPTS):
        executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.attempts) == ("claimed", 1)
    stops.lift(stop_id=row.pk, person=gate.sam, reason="go on")
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED


def test_no_worker_takes_what_the_agent_performs(gate: Gate) -> None:
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.QUEUED


def test_every_effect_has_a_satisfied_approval(gate: Gate) -> None:
    execution = granted(gate)
    executions.run(execution.pk)
    assert Decision.objects.filter(counts=True).count() == 1


def flaky(call: Any) -> dict[str, Any]:
    raise KnownFailure("busy", "ask me later", again=True)


def test_a_failure_that_may_be_tried_again_is_with_back_off_and_a_cap(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `decline` declares: three attempts, ten seconds apart, then fifteen."""
    monkeypatch.setattr(worlds, "failing", flaky)
    execution = granted(gate, "decline")
    waits = []
    for _ in range(2):
        executions.run(execution.pk)
        execution.refresh_from_db()
        assert execution.status == ExecutionStatus.QUEUED
        waits.append((execution.due_at - clock.now()).total_seconds())
        executions.run(execution.pk)
        assert execution.attempts == len(waits), "and not before it is due"
        Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert [round(one) for one in waits] == [10, 15]
    assert (execution.status, execution.attempts) == (ExecutionStatus.FAILED, 3)


def test_what_merely_failed_is_not_tried_again_by_itself(gate: Gate) -> None:
    execution = granted(gate, "decline")
    executions.run(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.attempts) == (ExecutionStatus.FAILED, 1)


def test_the_worker_says_when_it_asks_for_the_effect(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = granted(gate)
    seen = []

    def asked(call: Any) -> dict[str, Any]:
        row = Execution.objects.get(pk=execution.pk)
        seen.append(row.began_at)
        return {}

    monkeypatch.setattr(worlds, "keyed", asked)
    claims.take(execution_id=execution.pk, actor=claims.EXECUTOR)
    execution.refresh_from_db()
    assert execution.began_at is None
    factories.lapsed(execution)
    executions.run(execution.pk)
    assert seen != [None]
