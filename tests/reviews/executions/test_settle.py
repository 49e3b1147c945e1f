"""What people do with an execution that ended: a retry weighs in its sums again, and is
none where they ask for more authority by now."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import settings

from journal.errors import Conflict, GrantSpent
from journal.log import Actor
from policies.models import Observation
from reviews.alarms import standing
from reviews.choices import ExecutionStatus
from reviews.executions import claims, record, redeem, run, settle
from reviews.models import Alarm, Execution
from reviews.tool_services.executors import build_success, build_unknown
from tests import factories, worlds
from tests.conftest import Gate
from tests.reviews.executions.attempts import (
    declined,
    deployment,
    granted,
    reported,
)


def weighs(execution: Execution) -> bool:
    rows = Observation.objects.filter(proposal=execution.proposal_id, measure="paid")
    return rows.get().counts


def test_a_retry_weighs_in_its_sums_again(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = declined(gate, monkeypatch, amount="80.00")
    assert not weighs(execution)
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    assert weighs(execution)


def test_a_retry_asks_for_no_more_than_was_given_or_is_none(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another of the same customer ran meanwhile: together they need two people."""
    execution = declined(gate, monkeypatch, amount="80.00")
    run.run_execution(granted(gate, amount="80.00", thread="t-2").pk)
    with pytest.raises(Conflict, match="requires more approval"):
        settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.FAILED
    assert not weighs(execution)


def test_a_tool_that_changed_is_no_reason_for_an_error(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = declined(gate, monkeypatch, amount="80.00")
    document = factories.document_of_tests()
    schema = document["tools"]["pay"]["schema"]
    schema["properties"]["amount"] = {"type": "string", "pattern": "^no"}
    factories.policy(gate.people, document)
    with pytest.raises(Conflict, match="no longer fit"):
        settle.retry_execution(execution_id=execution.pk, person=gate.rita)


def denied(gate: Gate, tool: str) -> Execution:
    """Nobody knew whether it happened, and a person says no at once."""
    execution = granted(gate, tool)
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim is not None
    record.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=build_unknown("no_answer", ""),
        actor=claims.EXECUTOR_ACTOR,
    )
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=False, reason="not there"
    )
    execution.refresh_from_db()
    return execution


def test_what_may_still_be_on_its_way_is_tried_again_when_its_lease_is_over(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "has_tries_left", lambda execution: False)
    execution = denied(gate, "pay_queryable")
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    execution.refresh_from_db()
    lease = timedelta(seconds=settings.COUNTERSEAL.lease_seconds)
    assert execution.claimed_at is not None
    assert execution.due_at == execution.claimed_at + lease


def happened_after_all(
    execution: Execution, actor: Actor = claims.EXECUTOR_ACTOR
) -> None:
    """Whoever made the first attempt says so, when it is too late."""
    record.record_late_report(
        execution_id=execution.pk,
        fence=1,
        action_hash=execution.grant.action_hash,
        outcome=build_success({}),
        actor=actor,
    )


def test_what_an_alarm_says_happened_is_not_tried_again_until_it_is_closed(
    gate: Gate,
) -> None:
    execution = denied(gate, "pay_opaque")
    happened_after_all(execution)
    alarm = Alarm.objects.get(kind="late_report")
    with pytest.raises(Conflict, match="A late report says"):
        settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    standing.acknowledge_alarm(alarm_id=alarm.pk, person=gate.sue)
    standing.close_alarm(
        alarm_id=alarm.pk, person=gate.sue, note="It is not in the books."
    )
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.QUEUED


def test_what_is_said_to_have_happened_after_the_retry_is_not_done_again(
    gate: Gate,
) -> None:
    """Nobody can look it up, and no provider knows our key."""
    execution = denied(gate, "pay_opaque")
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    happened_after_all(execution)
    assert Alarm.objects.filter(kind="late_report").exists()
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("unknown", "reported_late")
    assert not worlds.effects()


def test_nor_is_it_given_to_its_agent_again(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["deploy"]["execution_class"] = "opaque"
    factories.policy(gate.people, document)
    execution, token = deployment(gate)
    claim = redeem.redeem_grant(token=token, agent="riley")
    reported(execution, claim.fence, build_unknown("no_answer", ""))
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sam, happened=False, reason="not there"
    )
    settle.retry_execution(execution_id=execution.pk, person=gate.sue)
    happened_after_all(execution, Actor("agent", "riley"))
    with pytest.raises(GrantSpent):
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("unknown", "reported_late")


def test_a_provider_that_knows_our_key_may_be_asked_all_the_same(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(record, "has_tries_left", lambda execution: False)
    execution = denied(gate, "pay")
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    happened_after_all(execution)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, len(worlds.effects())) == ("succeeded", 1)
