"""One attempt, as a worker makes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings

from journal import log
from reviews.choices import ExecutionStatus, GrantStatus, Scope
from reviews.executions import claims, rechecks, record, run
from reviews.models import Decision, Execution
from reviews.stops import stops
from reviews.tool_services.executors import KnownFailure
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.executions.attempts import MOST_ATTEMPTS, ends, granted


def test_a_run_performs_the_effect_once_and_records_it(gate: Gate) -> None:
    execution = granted(gate)
    run.run_execution(execution.pk)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED
    assert execution.grant.status == GrantStatus.SPENT
    assert len(worlds.effects()) == 1
    assert record.decrypt_result(execution) == {"done": execution.idempotency_key}


def test_auto_and_notify_run_without_a_person(gate: Gate) -> None:
    for tool in ("look", "tag"):
        proposal = propose(gate.agent, tool)
        execution = proposal.executions.get()
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert execution.status == ExecutionStatus.SUCCEEDED


@pytest.mark.parametrize("tool", ["pay", "pay_queryable"])
def test_a_lapsed_lease_is_taken_over_and_the_effect_stays_one(
    gate: Gate, tool: str
) -> None:
    execution = granted(gate, tool)
    claim = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    worlds.keyed(claim.call) if tool == "pay" else worlds.plain(claim.call)
    factories.lapsed(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.fence) == (ExecutionStatus.SUCCEEDED, 2)
    assert len(worlds.effects()) == 1


def test_a_lapsed_lease_of_an_opaque_tool_is_unknown(gate: Gate) -> None:
    execution = granted(gate, "pay_opaque")
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.UNKNOWN
    assert worlds.effects() == []


def test_what_failed_in_an_attempt_that_never_ended_is_its_outcome(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = granted(gate, "pay_queryable")
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    monkeypatch.setattr(worlds, "find", lambda call: {"status": "failed"})
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED
    assert worlds.effects() == []


@pytest.mark.parametrize("ran", [True, False])
@pytest.mark.parametrize("end", ["window", "attempts"])
def test_what_can_be_looked_up_is_before_it_is_unknown(
    gate: Gate, ran: bool, end: str
) -> None:
    execution = granted(gate, "pay_queryable")
    claim = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    if ran:
        worlds.plain(claim.call)
    factories.lapsed(execution)
    code = ends(execution, end)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ("succeeded" if ran else "refused")
    assert execution.code == ("" if ran else code)
    assert len(worlds.effects()) == ran, "nothing is begun any more"


@pytest.mark.parametrize("end", ["window", "attempts"])
def test_a_look_up_without_an_answer_is_unknown(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    execution = granted(gate, "pay_queryable")
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    factories.lapsed(execution)
    ends(execution, end)
    monkeypatch.setattr(worlds, "find", lambda call: {"status": "who knows"})
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("unknown", "ambiguous")


def test_what_a_service_may_still_be_at_is_looked_up_when_the_lease_is_over(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked sooner it would deny it, do it, and do it again for the next attempt."""
    execution = granted(gate, "pay_queryable")
    plain, at_it = worlds.plain, []

    def slow(call: Any) -> dict[str, Any]:
        at_it.append(call)
        raise TimeoutError

    monkeypatch.setattr(worlds, "plain", slow)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("claimed", "callable_raised")
    assert execution.claimed_at is not None
    lease = timedelta(seconds=settings.COUNTERSEAL.lease_seconds)
    assert execution.lease_until == execution.claimed_at + lease
    monkeypatch.setattr(worlds, "plain", plain)
    plain(at_it[0])
    factories.lapsed(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, len(worlds.effects())) == ("succeeded", 1)


def test_a_keyed_service_and_one_that_was_only_asked_are_asked_again_soon(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "keyed", lambda call: 1 / 0)
    monkeypatch.setattr(worlds, "find", lambda call: {"status": "who knows"})
    keyed, asked = granted(gate), granted(gate, "pay_queryable", thread="t-2")
    claims.claim_execution(execution_id=asked.pk, actor=claims.EXECUTOR_ACTOR)
    factories.lapsed(asked)
    for execution in (keyed, asked):
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert execution.claimed_at
        assert execution.lease_until
        wait = execution.lease_until - execution.claimed_at
        assert wait < timedelta(seconds=settings.COUNTERSEAL.lease_seconds / 2)


def test_who_dies_of_every_look_up_is_not_followed_for_ever(gate: Gate) -> None:
    execution = granted(gate, "pay_queryable")
    ends(execution, "attempts")
    for _ in range(MOST_ATTEMPTS + 2):
        claims.claim_execution(execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR)
        factories.lapsed(execution) if claimed(execution) else None
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.UNKNOWN


def claimed(execution: Execution) -> bool:
    execution.refresh_from_db()
    return execution.status == ExecutionStatus.CLAIMED


def test_a_held_lease_is_not_taken(gate: Gate) -> None:
    execution = granted(gate)
    claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM) is None


def test_every_effect_has_a_satisfied_approval(gate: Gate) -> None:
    execution = granted(gate)
    run.run_execution(execution.pk)
    assert Decision.objects.filter(counts=True).count() == 1


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
    claims.claim_execution(execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR)
    execution.refresh_from_db()
    assert execution.began_at is None
    factories.lapsed(execution)
    run.run_execution(execution.pk)
    assert seen != [None]


@pytest.mark.parametrize("code", ["grant_unknown_key", "grant_expired"])
def test_a_grant_that_is_not_taken_says_nothing_of_the_attempt_before(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """Its answer was lost, and the service does not look at its key any more."""
    execution = granted(gate)
    claim = claims.claim_execution(execution_id=execution.pk, actor=log.SYSTEM)
    assert claim is not None
    worlds.keyed(claim.call)
    factories.lapsed(execution)

    def refuses(call: Any) -> None:
        raise KnownFailure(code)

    monkeypatch.setattr(worlds, "keyed", refuses)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("claimed", code), "it is asked again"
    factories.lapsed(execution)
    ends(execution, "window")
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.UNKNOWN


def test_a_grant_that_was_never_taken_is_a_known_failure(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(call: Any) -> None:
        raise KnownFailure("grant_expired")

    monkeypatch.setattr(worlds, "keyed", refuses)
    execution = granted(gate)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("failed", "grant_expired")


def off(gate: Gate, scope: Scope, key: str) -> None:
    stops.create_stop(scope=scope, key=key, person=gate.sam, reason="enough")


@pytest.mark.parametrize("end", ["window", "reviewer", "stop"])
def test_what_ends_while_the_rest_is_checked_is_seen_before_the_effect(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """Readers and verifiers may take seconds."""
    execution, check = granted(gate), rechecks.find_refusal

    def slow(execution: Execution, definition: Any) -> Any:
        found = check(execution, definition)
        if end == "window":
            ends(execution, "window")
        elif end == "reviewer":
            off(gate, Scope.REVIEWER, gate.rita.public_id)
        else:
            off(gate, Scope.TOOL, "pay")
        return found

    monkeypatch.setattr(rechecks, "find_refusal", slow)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    code = {
        "window": "window_closed",
        "reviewer": "approver_revoked",
        "stop": "stopped",
    }[end]
    assert (execution.status, execution.code) == ("refused", code)
    assert not worlds.effects()
