"""I21: the time to decide is one thing, the time to execute another."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from journal import clock, errors
from policies import calendars, tools
from reviews import deadlines
from reviews.choices import ExecutionStatus, GrantStatus
from reviews.executions import redeem, run, settle
from reviews.grants import tokens
from reviews.models import ApprovalRequest, Execution, Grant
from reviews.tool_services import readers
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states

DAY = timedelta(hours=24)
USUAL = timedelta(minutes=15)


def policy(gate: Gate, tool: str = "pay", **parts: Any) -> None:
    """The tests' policy with these parts of one tool replaced."""
    document = factories.document_of_tests()
    document["tools"][tool].update(parts)
    factories.policy(gate.people, document)


def granted(gate: Gate, **fields: Any) -> Execution:
    request = propose(gate.agent, **fields).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def deployment(gate: Gate) -> Execution:
    """An effect that its agent performs."""
    request = propose(gate.agent, "deploy").request
    decide(request, gate.sue)
    decide(request, gate.sam)
    return Execution.objects.get(proposal=request.proposal_id)


def window_of(execution: Execution) -> timedelta:
    grant = Grant.objects.get(execution=execution)
    return grant.expires_at - grant.issued_at


def over(execution: Execution) -> None:
    """Move the end of its window into the past; the clock is never moved."""
    past = clock.now() - timedelta(seconds=1)
    Grant.objects.filter(execution=execution).update(expires_at=past)


@pytest.mark.parametrize("window", ["60s", "15m", "24h"])
def test_who_approves_in_the_last_second_gives_the_whole_window(
    gate: Gate, window: str
) -> None:
    policy(gate, timeout="60s", window=window)
    request = propose(gate.agent).request
    soon = clock.now() + timedelta(seconds=2)
    ApprovalRequest.objects.filter(pk=request.pk).update(expires_at=soon)
    decide(request, gate.rita)
    execution = Execution.objects.get()
    assert window_of(execution) == calendars.parse_duration(window)
    factories.overdue(request)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED
    assert len(worlds.effects()) == 1


def test_a_long_time_to_decide_makes_no_long_window(gate: Gate) -> None:
    policy(gate, timeout="90d")
    assert window_of(granted(gate)) == USUAL


def test_a_recall_window_takes_nothing_of_it(gate: Gate) -> None:
    states.recall_windows(gate, 3600)
    request = propose(gate.agent).request
    decide(request, gate.rita)
    assert not Grant.objects.exists()
    factories.window_over(request)
    assert window_of(Execution.objects.get()) == USUAL


def test_what_asks_nobody_has_its_window_too(gate: Gate) -> None:
    policy(gate, "look", window="2m")
    propose(gate.agent, "look")
    assert window_of(Execution.objects.get()) == timedelta(minutes=2)


def test_an_edit_gives_the_window_of_the_tool_that_runs(gate: Gate) -> None:
    policy(gate, window="24h")
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "39.00", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args)
    assert window_of(Execution.objects.get()) == DAY


def test_the_grant_of_a_retry_ends_when_it_would_have(gate: Gate) -> None:
    request = propose(gate.agent, "decline").request
    decide(request, gate.rita)
    execution = Execution.objects.get()
    ends = execution.grant.expires_at
    run.run_execution(execution.pk)
    settle.retry_execution(execution_id=execution.pk, person=gate.sue)
    assert Grant.objects.get().expires_at == ends
    run.run_execution(execution.pk)
    over(execution)
    with pytest.raises(errors.GrantExpired):
        settle.retry_execution(execution_id=execution.pk, person=gate.sue)


@pytest.mark.parametrize(("left", "status"), [(2, "queued"), (-1, "failed")])
def test_nothing_is_tried_again_after_it(gate: Gate, left: int, status: str) -> None:
    """What never left the house is tried again, if its time allows that."""
    document = factories.document_of_tests()
    closed = {"kind": "webhook", "url": "http://192.0.2.1/"}  # reached by nobody
    document["tools"]["pay"].update({"executor": closed, "window": "60s"})
    factories.policy(gate.people, document)
    execution = granted(gate)
    pause = timedelta(seconds=2)  # the first back-off
    ends = clock.now() + pause + timedelta(seconds=left)
    Grant.objects.filter(execution=execution).update(expires_at=ends)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == (status, "address_refused")


@pytest.mark.parametrize("by_agent", [False, True])
def test_what_is_still_queued_after_it_is_refused(gate: Gate, by_agent: bool) -> None:
    """By the sweep, without anybody who asks."""
    execution = deployment(gate) if by_agent else granted(gate)
    over(execution)
    for execution_id in deadlines.list_overdue_executions(quiet=timedelta(0)):
        run.run_execution(execution_id)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "window_closed")
    assert execution.grant.status == GrantStatus.EXPIRED
    assert worlds.effects() == []
    if by_agent:
        token = tokens.load_token(execution.grant_id)
        with pytest.raises(errors.GrantExpired):
            redeem.redeem_grant(token=token, agent="riley")


def ending(execution: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let its time be over while the state of the world is read."""
    read = readers.read_state

    def slowly(*args: Any, **more: Any) -> Any:
        over(execution)
        return read(*args, **more)

    monkeypatch.setattr(readers, "read_state", slowly)


def test_a_window_that_ends_during_the_checks_is_over(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = granted(gate)
    ending(execution, monkeypatch)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "window_closed")
    assert worlds.effects() == []


def test_so_it_is_for_an_agent_that_redeems(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = {"kind": "callable", "path": "tests.worlds.read"}
    policy(gate, "deploy", reader=reader, preconditions=["row_version"])
    execution = deployment(gate)
    token = tokens.load_token(execution.grant_id)
    ending(execution, monkeypatch)
    with pytest.raises(errors.GrantExpired):
        redeem.redeem_grant(token=token, agent="riley")
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "window_closed")


def test_a_page_knows_how_long_a_stop_must_look_back(gate: Gate) -> None:
    assert tools.load_longest_window() == USUAL
    policy(gate, window="24h")
    assert tools.load_longest_window() == DAY
    factories.policy(gate.people)
    assert tools.load_longest_window() == DAY, "what was granted then may still run"
