from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from desk.components import retry
from hitl import tasks
from journal import clock, errors, log
from journal.models import LogRecord, OutboxMessage
from reviews.choices import ExecutionStatus, RequestStatus, Scope, StopMode
from reviews.executions import record as executions
from reviews.executions import run, settle
from reviews.models import Execution, Stop
from reviews.stops import scope as stop_work
from reviews.stops import stops
from reviews.tool_services.executors import build_failure
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states


def enforce() -> None:
    """What the worker does with the Stop row's message."""
    for message in OutboxMessage.objects.filter(topic="stop.raised", done_at=None):
        tasks.enforce_stop(message.pk)


def test_stopping_a_thread_withdraws_what_waits(gate: Gate) -> None:
    inside, outside = propose(gate.agent), propose(gate.agent, thread="t-2")
    stops.create_stop(
        scope=Scope.THREAD, key="riley/t-1", person=gate.sue, reason="odd"
    )
    enforce()
    inside.request.refresh_from_db()
    outside.request.refresh_from_db()
    assert inside.request.status == RequestStatus.WITHDRAWN
    assert outside.request.status == RequestStatus.PENDING


def test_stopping_refuses_what_is_granted_and_not_begun(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita)
    stops.create_stop(scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd")
    enforce()
    assert request.proposal.executions.get().status == ExecutionStatus.REFUSED


def test_what_is_to_be_tried_once_more_is_refused_for_good(gate: Gate) -> None:
    execution = states.requeued(gate)
    row = stops.create_stop(
        scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd"
    )
    enforce()
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "stopped")
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="over")
    run.run_execution(execution.pk)
    assert worlds.effects() == []


def test_a_pause_takes_nothing_back(gate: Gate) -> None:
    request = propose(gate.agent).request
    stop = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="look",
    )
    assert stop_work.list_proposals_to_withdraw(stop) == []
    decide(request, gate.rita)


def test_many_actions_are_looked_at_at_once(
    gate: Gate, django_assert_num_queries: Any
) -> None:
    """The strictest of each; a name is a switch of its own scope only."""
    tool = ("riley", "t-1", "pay")
    thread = ("riley", "t-2", "look")
    namesake = ("pay", "riley", "riley")
    for scope, key, mode in [
        (Scope.TOOL, "pay", StopMode.PAUSED),
        (Scope.THREAD, "riley/t-1", StopMode.STOPPED),
        (Scope.THREAD, "riley/t-2", StopMode.PAUSED),
    ]:
        stops.create_stop(
            scope=scope, key=key, mode=mode, person=gate.sue, reason="odd"
        )
    with django_assert_num_queries(1):
        found = stops.load_stop_modes([tool, thread, namesake])
    assert found == {tool: StopMode.STOPPED, thread: StopMode.PAUSED, namesake: None}
    stops.create_stop(scope=Scope.EVERYTHING, person=gate.adam, reason="odd")
    assert stops.find_stop_mode(*namesake) is StopMode.STOPPED


@pytest.mark.parametrize(
    ("name", "scope", "mode", "may"),
    [
        ("rita", Scope.THREAD, StopMode.PAUSED, True),
        ("rita", Scope.THREAD, StopMode.STOPPED, False),
        ("sue", Scope.AGENT, StopMode.STOPPED, True),
        ("sue", Scope.EVERYTHING, StopMode.STOPPED, False),
        ("adam", Scope.EVERYTHING, StopMode.STOPPED, True),
        ("otto", Scope.THREAD, StopMode.PAUSED, False),
    ],
)
def test_who_may_stop_what(
    gate: Gate, name: str, scope: Scope, mode: StopMode, may: bool
) -> None:
    given: Any = {"scope": scope, "key": "k", "mode": mode, "person": gate.people[name]}
    if may:
        stops.create_stop(**given, reason="odd")
    else:
        with pytest.raises(errors.NotPermitted):
            stops.create_stop(**given, reason="odd")


def test_the_same_switch_is_off_once(gate: Gate) -> None:
    stops.create_stop(scope=Scope.TOOL, key="pay", person=gate.sue, reason="a")
    with pytest.raises(errors.Conflict):
        stops.create_stop(scope=Scope.TOOL, key="pay", person=gate.sam, reason="b")


def test_everything_takes_two_people_to_go_on(gate: Gate) -> None:
    stop = stops.create_stop(scope=Scope.EVERYTHING, person=gate.adam, reason="halt")
    stops.lift_stop(stop_id=stop.pk, person=gate.sue, reason="fine")
    assert Stop.objects.get(pk=stop.pk).lifted_at is None
    with pytest.raises(errors.NotPermitted):
        stops.lift_stop(stop_id=stop.pk, person=gate.sue, reason="fine")
    stops.lift_stop(stop_id=stop.pk, person=gate.sam, reason="fine")
    assert Stop.objects.get(pk=stop.pk).lifted_at is not None


def test_a_stopped_reviewer_decides_nothing(gate: Gate) -> None:
    request = propose(gate.agent).request
    key = gate.rita.public_id
    stops.create_stop(scope=Scope.REVIEWER, key=key, person=gate.adam, reason="left")
    with pytest.raises(errors.NotPermitted):
        decide(request, gate.rita)


def test_the_reason_is_private_in_the_log(gate: Gate) -> None:
    stops.create_stop(scope=Scope.TOOL, key="pay", person=gate.sue, reason="a secret")
    record = LogRecord.objects.get(kind="stop.raised")
    assert b"a secret" not in bytes(record.leaf)
    assert record.payload.values == {"reason": "a secret"}


def test_a_finished_thread_is_not_touched(gate: Gate) -> None:
    proposal = propose(gate.agent, "look")
    run.run_execution(proposal.executions.get().pk)
    stop = stops.create_stop(
        scope=Scope.AGENT, key="riley", person=gate.sue, reason="x"
    )
    assert stop_work.list_proposals_to_withdraw(stop) == []


@pytest.fixture
def off_and_on(gate: Gate) -> Callable[[], None]:
    """Everything of the agent is stopped, and soon switched on again."""

    def do() -> None:
        row = stops.create_stop(
            scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd"
        )
        enforce()
        stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="over")

    return do


def test_what_had_failed_before_a_stop_is_asked_anew(
    gate: Gate, off_and_on: Callable[[], None]
) -> None:
    execution = states.failed(gate)
    off_and_on()
    assert not retry.find_retryable(gate.rita, [execution.pk], clock.now())
    with pytest.raises(errors.Conflict, match="stopped"):
        settle.retry_execution(execution_id=execution.pk, person=gate.rita)


def test_what_ran_at_a_stop_is_not_tried_again_by_itself_when_it_is_over(
    gate: Gate, off_and_on: Callable[[], None]
) -> None:
    execution = states.claimed(gate)
    execution.refresh_from_db()
    off_and_on()
    executions.record_outcome(
        execution_id=execution.pk,
        fence=execution.fence,
        outcome=build_failure("busy", "", again=True),
        actor=log.SYSTEM,
    )
    Execution.objects.filter(pk=execution.pk).update(due_at=clock.now())
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, execution.code) == ("refused", "taken_back")
    assert worlds.effects() == []


def test_what_is_granted_after_it_runs(
    gate: Gate, off_and_on: Callable[[], None]
) -> None:
    off_and_on()
    run.run_execution(states.queued(gate).pk)
    assert len(worlds.effects()) == 1


def test_a_pause_that_is_over_keeps_nothing(gate: Gate) -> None:
    execution = states.queued(gate)
    row = stops.create_stop(
        scope=Scope.AGENT,
        key="riley",
        mode=StopMode.PAUSED,
        person=gate.sue,
        reason="look",
    )
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="over")
    run.run_execution(execution.pk)
    assert len(worlds.effects()) == 1
