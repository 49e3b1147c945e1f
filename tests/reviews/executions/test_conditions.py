"""An approval with conditions: each is checked before the effect, which is refused if
one does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from journal import clock, errors
from journal.models import LogRecord
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.executions import redeem, run
from reviews.grants import grants, tokens
from reviews.grants.grants import ExpectedValue, GrantConditions, join_conditions
from reviews.models import ApprovalRequest, Decision, Execution, Grant
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states

HOUR = timedelta(hours=1)
AMOUNT = ExpectedValue("amount", "0.00")
WINDOW = timedelta(minutes=15)


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    worlds.WORLD.clear()


def approved(gate: Gate, conditions: GrantConditions, tool: str = "pay") -> Execution:
    request = propose(gate.agent, tool).request
    decide(request, gate.rita, conditions=conditions)
    return Execution.objects.get(proposal=request.proposal_id)


def ran(execution: Execution) -> Execution:
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    return execution


def wrong(gate: Gate, conditions: GrantConditions, verdict: str = "approve") -> Any:
    """The path and rule of the only error of a verdict with these conditions."""
    request = propose(gate.agent).request
    with pytest.raises(errors.InvalidInput) as caught:
        decide(request, gate.rita, verdict, conditions=conditions)
    assert not Decision.objects.exists()
    (error,) = caught.value.errors
    return error["path"], error["message"]


def test_nothing_runs_before_the_time(gate: Gate) -> None:
    begins = clock.now() + HOUR
    execution = approved(gate, GrantConditions(not_before=begins))
    assert (execution.due_at, execution.grant.not_before) == (begins, begins)
    # The window begins when the execution is due.
    assert execution.grant.expires_at == begins + WINDOW
    # Not even where the queue says that it is due.
    Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
    assert ran(execution).status == ExecutionStatus.QUEUED
    assert worlds.effects() == []
    worlds.rewrite(Grant, execution.grant_id, not_before=clock.now())
    assert ran(execution).status == ExecutionStatus.SUCCEEDED


def test_nothing_runs_after_the_time(gate: Gate) -> None:
    ends = clock.now() + timedelta(minutes=5)
    execution = approved(gate, GrantConditions(not_after=ends))
    assert execution.grant.expires_at == ends
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    found = ran(execution)
    assert (found.status, found.code) == (ExecutionStatus.REFUSED, "window_closed")
    assert worlds.effects() == []


def test_a_late_end_leaves_the_window_as_the_policy_says(gate: Gate) -> None:
    execution = approved(gate, GrantConditions(not_after=clock.now() + HOUR))
    grant = execution.grant
    assert grant.expires_at == grant.issued_at + WINDOW


def test_a_value_that_is_still_the_same_lets_it_run(gate: Gate) -> None:
    execution = approved(gate, GrantConditions(expected=(AMOUNT,)))
    assert execution.grant.expected == [{"field": "amount", "value": "0.00"}]
    assert ran(execution).status == ExecutionStatus.SUCCEEDED


@pytest.mark.parametrize("now", [{"amount": "5.00"}, {}, {"amount": None}])
def test_another_value_refuses_the_effect(gate: Gate, now: dict[str, Any]) -> None:
    execution = approved(gate, GrantConditions(expected=(AMOUNT,)))
    worlds.WORLD["before"] = now
    found = ran(execution)
    assert (found.status, found.code) == (ExecutionStatus.REFUSED, "condition")
    assert found.detail == "A condition of the approval no longer holds: amount."
    assert worlds.effects() == []


def test_one_is_not_true(gate: Gate) -> None:
    worlds.WORLD["before"] = {"open": True}
    execution = approved(gate, GrantConditions(expected=(ExpectedValue("open", True),)))
    worlds.WORLD["before"] = {"open": 1}
    assert ran(execution).code == "condition"


def test_a_grant_that_lost_its_condition_is_checked_by_its_votes(gate: Gate) -> None:
    execution = approved(gate, GrantConditions(expected=(AMOUNT,)))
    worlds.rewrite(Grant, execution.grant_id, expected=None)
    worlds.WORLD["before"] = {"amount": "5.00"}
    assert ran(execution).code == "condition"


def test_a_value_that_cannot_be_read_does_not_run(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = approved(gate, GrantConditions(expected=(AMOUNT,)))

    def down(args: object) -> None:
        raise OSError("the store is down")

    monkeypatch.setattr(worlds, "read", down)
    found = ran(execution)
    assert (found.status, found.code) == (ExecutionStatus.QUEUED, "unread")
    assert worlds.effects() == []


def test_conditions_of_all_approvals_apply_together(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    now = clock.now()
    decide(
        request,
        gate.sue,
        conditions=GrantConditions(now + HOUR, now + 3 * HOUR, (AMOUNT,)),
    )
    ends = now + 2 * HOUR + timedelta(minutes=5)
    later = now + 2 * HOUR
    version = ExpectedValue("row_version", 1)
    decide(
        request, gate.sam, conditions=GrantConditions(later, ends, (version, AMOUNT))
    )
    grant = Grant.objects.get(proposal=request.proposal_id)
    assert (grant.not_before, grant.expires_at) == (later, ends)
    assert [one["field"] for one in grant.expected or ()] == ["amount", "row_version"]


def test_a_recall_window_keeps_the_conditions(gate: Gate) -> None:
    states.recall_windows(gate)
    request: ApprovalRequest = propose(gate.agent).request
    begins = clock.now() + HOUR
    conditions = GrantConditions(not_before=begins, expected=(AMOUNT,))
    decide(request, gate.rita, conditions=conditions)
    factories.window_over(request)
    grant = Grant.objects.get(proposal=request.proposal_id)
    assert (grant.not_before, grant.expected) == (begins, [AMOUNT._asdict()])


def test_a_void_vote_takes_its_conditions_along(gate: Gate) -> None:
    request = propose(gate.agent, amount="899.00").request
    conditions = GrantConditions(not_before=clock.now() + HOUR)
    decide(request, gate.sue, conditions=conditions)
    factories.revise(gate.agent, request.proposal, amount="898.00")
    decide(request, gate.sue)
    decide(request, gate.sam)
    assert Grant.objects.get(proposal=request.proposal_id).not_before is None


def test_a_condition_is_for_an_approval(gate: Gate) -> None:
    path, rule = wrong(gate, GrantConditions(expected=(AMOUNT,)), "reject")
    assert (path, rule) == (
        "conditions",
        "only an approval takes conditions; leave them out",
    )


@pytest.mark.parametrize(
    ("begins", "ends", "path", "rule"),
    [
        (None, -HOUR, "not_after", "must be later than now; choose a later time"),
        (HOUR, HOUR, "not_after", "must be later than “not before”"),
        (timedelta(days=31), None, "not_before", "at most 30 days from now"),
    ],
)
def test_a_time_that_leaves_no_time_is_refused(
    gate: Gate,
    begins: timedelta | None,
    ends: timedelta | None,
    path: str,
    rule: str,
) -> None:
    now = clock.now()
    conditions = GrantConditions(
        not_before=now + begins if begins else None,
        not_after=now + ends if ends else None,
    )
    found = wrong(gate, conditions)
    assert found[0] == f"conditions.{path}"
    assert rule in found[1]


def test_an_unknown_field_names_those_there_are(gate: Gate) -> None:
    path, rule = wrong(gate, GrantConditions(expected=(ExpectedValue("colour", "r"),)))
    assert path == "conditions.expect.0.field"
    assert rule.endswith("use one of: amount, row_version")


def test_too_many_values_are_refused(gate: Gate) -> None:
    path, rule = wrong(gate, GrantConditions(expected=(AMOUNT,) * 11))
    assert (path, rule) == ("conditions.expect", "at most 10 values: 11 were given")


def test_the_log_names_the_conditions_without_the_values(gate: Gate) -> None:
    worlds.WORLD["before"] = {"owner": "Ann Miller"}
    expected = (ExpectedValue("owner", "Ann Miller"),)
    approved(gate, GrantConditions(expected=expected))
    record = LogRecord.objects.get(kind="decision.recorded")
    assert record.data["conditions"] == {
        "not_before": None,
        "not_after": None,
        "fields": ["owner"],
    }
    assert b"Miller" not in bytes(record.leaf)


def test_an_agent_redeems_when_the_approval_holds(gate: Gate) -> None:
    request = propose(gate.agent, "deploy").request
    begins = clock.now() + HOUR
    decide(request, gate.sue, conditions=GrantConditions(not_before=begins))
    decide(request, gate.sam)
    execution = Execution.objects.get(proposal=request.proposal_id)
    token = tokens.load_token(execution.grant_id)
    assert tokens.verify_token(token)["nbf"] >= begins.timestamp()
    with pytest.raises(errors.Conflict, match="The approval holds from") as caught:
        redeem.redeem_grant(token=token, agent="riley")
    assert caught.value.facts == {"not_before": clock.format_instant(begins)}


def test_without_conditions_nothing_is_stored(gate: Gate) -> None:
    execution = approved(gate, grants.NO_CONDITIONS)
    assert Decision.objects.get().conditions is None
    assert (execution.grant.not_before, execution.grant.expected) == (None, None)
    assert ran(execution).status == ExecutionStatus.SUCCEEDED
    request = ApprovalRequest.objects.get()
    assert request.status == RequestStatus.AUTHORIZED


def test_stored_conditions_are_read_back() -> None:
    said = GrantConditions(
        datetime.fromisoformat("2026-03-01T10:00:00+00:00"), None, (AMOUNT,)
    )
    assert GrantConditions.from_json(said.as_json()) == said
    assert join_conditions([]) == grants.NO_CONDITIONS
