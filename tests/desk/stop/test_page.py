"""What a stop meets and what it says of it: every fate, and whose eyes they are for."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from guardian.shortcuts import remove_perm

from desk.components import in_flight, switches
from desk.stop import result
from desk.stop.page import StopRequest, build_stop_page, is_offered
from hitl import tasks
from journal import clock, errors
from journal.models import LogRecord, OutboxMessage
from policies.models import Queue
from reviews.choices import Scope, StopMode
from reviews.executions import claims, record
from reviews.executions import run as executions
from reviews.models import Execution, Stop
from reviews.stops import stops
from reviews.tool_services.executors import EffectOutcome, OutcomeStatus
from tests import factories, worlds
from tests.conftest import Gate
from tests.desk.components.test_visibility import fresh
from tests.factories import decide, propose
from tests.reviews import states

RUN = StopRequest(agent="riley", thread="t-1")


def stop(gate: Gate, scope: Scope = Scope.AGENT, key: str = "riley", **more) -> Stop:
    return stops.create_stop(scope=scope, key=key, person=gate.sue, reason="x", **more)


def enforce() -> None:
    """What the worker does with the Stop row's message."""
    for message in OutboxMessage.objects.filter(topic="stop.raised", done_at=None):
        tasks.enforce_stop(message.pk)


def fates(row: Stop) -> Counter[str]:
    return Counter(line.fate for line in result.list_affected_actions(row))


def finish(execution: Execution, status: OutcomeStatus = "succeeded") -> None:
    execution.refresh_from_db()
    outcome = EffectOutcome(status)
    record.record_outcome(
        execution_id=execution.pk,
        fence=execution.fence,
        outcome=outcome,
        actor=claims.EXECUTOR_ACTOR,
    )


def test_each_thing_under_way_has_its_fate(gate: Gate) -> None:
    running = states.claimed(gate)
    states.queued(gate, "pay_queryable")
    propose(gate.agent, customer="C-7")
    executions.run_execution(states.queued(gate, "pay_opaque").pk)  # was over before
    row = stop(gate)
    assert fates(row) == {"running": 1, "queued": 1}
    enforce()
    assert fates(row) == {"running": 1, "cancelled": 1, "withdrawn": 1}
    finish(running)
    assert fates(row) == {"finished": 1, "cancelled": 1, "withdrawn": 1}
    page = result.build_stopped_page(gate.sue, row.pk)
    assert (page.state, page.over) == ("stopped", True)
    assert (
        page.figures == "1 cancelled, 1 withdrawn, 1 had already started and finished"
    )


def test_halted_is_the_moment_at_which_the_last_was_over(gate: Gate) -> None:
    running = states.claimed(gate)
    row = stop(gate)
    assert result.build_stopped_page(gate.sue, row.pk).state == "stopping"
    finish(running)
    running.refresh_from_db()
    assert result.build_stopped_page(gate.sue, row.pk).halted_at == running.finished_at


def test_what_is_lost_after_the_stop_is_not_called_finished(gate: Gate) -> None:
    states.unknown(gate)  # before it: none of its business
    running = states.claimed(gate, "pay_opaque")
    row = stop(gate)
    finish(running, "unknown")
    assert fates(row) == {"unknown": 1}
    figures = result.build_stopped_page(gate.sue, row.pk).figures
    assert "1 with an unknown result" in figures


def test_a_pause_cancels_nothing_and_says_so(gate: Gate) -> None:
    states.queued(gate)
    propose(gate.agent, customer="C-7")
    row = stop(gate, mode=StopMode.PAUSED)
    enforce()
    page = result.build_stopped_page(gate.sue, row.pk)
    assert (page.state, page.over) == ("paused", True)
    assert page.figures == "nothing was cancelled, 1 kept in the queue, 1 still pending"


def test_what_the_agent_took_back_itself_is_not_the_stops(gate: Gate) -> None:
    proposal = propose(gate.agent)
    row = stop(gate)
    states.withdraw(gate.agent, proposal)
    assert fates(row) == {}


def test_only_its_own_scope_is_counted(gate: Gate) -> None:
    propose(gate.agent)
    other = propose(gate.agent, thread="t-2")
    row = stop(gate, Scope.THREAD, "riley/t-1")
    enforce()
    assert [
        (line.proposal.agent, line.proposal.thread)
        for line in result.list_affected_actions(row)
    ] == [("riley", "t-1")]
    other.request.refresh_from_db()
    assert other.request.status == "pending"


def test_after_it_is_lifted_nothing_new_is_its_own(gate: Gate) -> None:
    row = stop(gate)
    stops.lift_stop(stop_id=row.pk, person=gate.sam, reason="fine")
    states.succeeded(gate)
    row.refresh_from_db()
    assert fates(row) == {}
    page = result.build_stopped_page(gate.sue, row.pk)
    assert (page.state, page.switch.lifted_by) == ("resumed", gate.sam)


def test_a_reader_of_some_is_told_the_number_of_all(gate: Gate) -> None:
    propose(gate.agent)
    propose(gate.agent, "write")
    row = stop(gate)
    enforce()
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="mail"))
    page = result.build_stopped_page(fresh(gate.rita), row.pk)
    assert page.figures == "2 withdrawn"
    assert [line.proposal.tool_name for line in page.shown] == ["pay"]
    assert page.hidden == 1


def test_the_effect_of_each_is_said_and_how_to_undo_it(gate: Gate) -> None:
    states.claimed(gate, "repay")
    row = stop(gate)
    (line,) = result.build_stopped_page(gate.sue, row.pk).shown
    assert line.effect
    assert line.began
    assert line.undo


def test_the_numbers_of_each_scope(gate: Gate) -> None:
    states.claimed(gate)
    states.queued(gate, "pay_queryable")
    propose(gate.agent, thread="t-2")
    page = build_stop_page(gate.adam, RUN)
    found = {one.value: one.load for one in page.scopes}
    assert found["thread:riley/t-1"] == in_flight.InFlightCounts(1, 1, 0)
    assert found["agent:riley"] == in_flight.InFlightCounts(1, 1, 1)
    assert found["everything:"] == in_flight.InFlightCounts(1, 1, 1)
    assert [one.running for one in page.actions] == [True, False]


def test_no_more_queries_however_much_is_under_way(
    gate: Gate, django_assert_num_queries
) -> None:
    states.queued(gate)
    build_stop_page(gate.adam, RUN)
    with django_assert_num_queries(8) as few:
        build_stop_page(fresh(gate.adam), RUN)
    for number in range(6):
        letter = {"to": f"friend {number}", "text": "hello"}
        decide(propose(gate.agent, "write", args=letter).request, gate.rita)
        propose(factories.agent(gate.owen, f"agent-{number}"))
    build_stop_page(gate.adam, RUN)
    with django_assert_num_queries(len(few.captured_queries)):
        build_stop_page(fresh(gate.adam), RUN)
    row = stop(gate)
    enforce()
    result.build_stopped_page(gate.sue, row.pk)
    with django_assert_num_queries(14):
        result.build_stopped_page(fresh(gate.sue), row.pk)


def test_no_more_queries_however_much_is_off(
    gate: Gate, django_assert_num_queries
) -> None:
    for name in ("t-1", "t-2", "t-3"):
        propose(gate.agent, thread=name)
        stop(gate, Scope.THREAD, f"riley/{name}")
        with django_assert_num_queries(6):
            switches.list_switches_in_force(fresh(gate.rita))


@pytest.mark.parametrize(
    ("target", "asked", "may"),
    [
        ((Scope.THREAD, "riley/t-1"), RUN, True),
        ((Scope.THREAD, "riley/t-2"), RUN, False),
        ((Scope.AGENT, "riley"), RUN, True),
        ((Scope.AGENT, "robin"), RUN, False),
        ((Scope.AGENT, "riley"), StopRequest(), True),
        ((Scope.THREAD, "riley/t-1"), StopRequest(), False),
        ((Scope.TOOL, "pay"), RUN, False),
        ((Scope.TOOL, "pay"), replace(RUN, tool="pay"), True),
        ((Scope.REVIEWER, "u-1"), RUN, False),
        ((Scope.EVERYTHING, ""), StopRequest(), True),
        ((Scope.EVERYTHING, "x"), StopRequest(), False),
    ],
)
def test_a_key_is_never_taken_on_trust(gate: Gate, target, asked, may) -> None:
    propose(gate.agent)
    assert is_offered(gate.adam, asked, target) == may


def test_a_pause_becomes_a_stop_and_never_the_other_way(gate: Gate) -> None:
    paused = stop(gate, mode=StopMode.PAUSED)
    row = stop(gate)
    paused.refresh_from_db()
    assert (paused.lifted_at, row.mode) == (row.at, StopMode.STOPPED)
    assert LogRecord.objects.filter(kind="stop.tightened").count() == 1
    for mode in StopMode:
        with pytest.raises(errors.Conflict):
            stop(gate, mode=mode)


def test_a_pause_that_became_a_stop_says_so(gate: Gate) -> None:
    paused = stop(gate, mode=StopMode.PAUSED)
    row = stop(gate)
    page = result.build_stopped_page(gate.sue, paused.pk)
    assert (page.state, page.became, page.halted_at) == (
        "became_stop",
        row.pk,
        row.at,
    )


def test_what_is_stopped_already_is_not_offered_again(gate: Gate) -> None:
    propose(gate.agent)
    stop(gate, Scope.THREAD, "riley/t-1", mode=StopMode.PAUSED)
    run, agent = build_stop_page(gate.sue, RUN).scopes
    assert (run.done, run.chosen, run.note[:12]) == (False, True, "Paused since")
    stop(gate, Scope.THREAD, "riley/t-1")
    run, agent = build_stop_page(gate.sue, RUN).scopes
    assert (run.done, run.chosen, agent.chosen) == (True, False, True)


def test_what_holds_a_run_back_is_listed_with_its_reasons(gate: Gate) -> None:
    propose(gate.agent)
    stop(gate, Scope.THREAD, "riley/t-1", mode=StopMode.PAUSED)
    stop(gate, Scope.THREAD, "riley/t-2")
    stops.create_stop(scope=Scope.EVERYTHING, person=gate.adam, reason="halt")
    lines = switches.list_agent_switches(gate.sue, "riley", "t-1")
    assert {line.subject for line in lines} == {"Run riley/t-1", "Everything"}
    lines = switches.list_agent_switches(gate.sue, "riley")
    assert [line.subject for line in lines] == ["Everything"]


def test_old_ends_are_none_of_its_business(gate: Gate) -> None:
    states.succeeded(gate)
    row = stop(gate)
    worlds.rewrite(Stop, row.pk, at=clock.now() - timedelta(minutes=1))
    row.refresh_from_db()
    assert fates(row) == {"finished": 1}
    worlds.rewrite(Stop, row.pk, at=clock.now())
    row.refresh_from_db()
    assert fates(row) == {}
