"""Checks that say no before anything is begun."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents import registry
from reviews.choices import GrantStatus, Scope
from reviews.executions import claims, run
from reviews.models import Execution, Grant, Revision
from reviews.stops import stops
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews.executions.attempts import granted


def test_after_its_window_an_execution_is_refused(gate: Gate) -> None:
    execution = granted(gate)
    past = execution.queued_at - timedelta(seconds=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "window_closed")
    assert execution.grant.status == GrantStatus.EXPIRED


def test_a_stopped_tool_does_not_run(gate: Gate) -> None:
    execution = granted(gate)
    stops.create_stop(
        scope=Scope.TOOL, key="pay", person=gate.sue, reason="wrong payee"
    )
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "stopped")
    assert worlds.effects() == []


def test_a_stop_between_claim_and_effect_is_honoured(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = granted(gate)
    take = claims.claim_execution

    def take_then_stop(**given: Any) -> Any:
        claim = take(**given)
        stops.create_stop(scope=Scope.EVERYTHING, person=gate.adam, reason="halt")
        return claim

    monkeypatch.setattr(claims, "claim_execution", take_then_stop)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "stopped")
    assert worlds.effects() == []


def test_an_approver_who_lost_the_role_blocks_the_effect(gate: Gate) -> None:
    execution = granted(gate)
    gate.rita.groups.clear()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "approver_revoked")


@pytest.mark.parametrize("approved", [False, True])
def test_an_approver_who_became_the_owner_blocks_the_effect(
    gate: Gate, approved: bool
) -> None:
    """Whether the other approval came before or after that."""
    request = propose(gate.agent, amount="620.00").request
    decide(request, gate.sue)
    if approved:
        decide(request, gate.sam)
    change = registry.AgentChange(owner=gate.sue)
    registry.change_agent(agent=gate.agent, by=gate.adam, change=change)
    if not approved:
        decide(request, gate.sam)
    execution = Execution.objects.get()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "approver_revoked")
    assert worlds.effects() == []


def test_a_tightened_policy_blocks_the_effect(gate: Gate) -> None:
    execution = granted(gate)
    stricter = factories.document_of_tests()
    stricter["rules"][0]["when"] = "args.amount > 1000"
    factories.policy(gate.people, stricter)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "policy_tightened")


def test_a_changed_record_blocks_the_effect(gate: Gate) -> None:
    execution = granted(gate)
    worlds.WORLD["preconditions"] = {"row_version": 2}
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "precondition")


def test_no_bytes_but_the_approved_ones_run(gate: Gate) -> None:
    """I18: whoever writes other bytes past the trigger still performs nothing."""
    execution = granted(gate)
    revision = execution.grant.revision
    worlds.rewrite(Revision, revision.pk, canonical=b'{"args":{"amount":"1"}}')
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "bytes_changed")
    assert execution.detail == "The stored action is not the one that was granted."
    assert worlds.effects() == []
