"""Alarms found by several at once are raised once, and what two workers say of one
effect is told apart from two effects."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from reviews.alarms import standing, watch
from reviews.executions import claims, reconcile, record, run
from reviews.models import Alarm, Execution, Grant, LateReport
from reviews.tool_services import executors
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.races.together import at_once, before
from tests.reviews import states
from tests.reviews.alarms.test_watch import ended, raised

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_many_sweeps_at_once_raise_each_once(gate: Gate) -> None:
    late = [ended(states.queued(gate)) for _ in range(2)]
    other = states.queued(gate, "pay_queryable")
    worlds.rewrite(Grant, other.grant_id, action_hash="sha256:" + "0" * 64)
    changed = [one.value for one in at_once(*[watch.sweep_alarms] * 6)]
    assert sum(changed) == 3
    assert sorted(raised()) == [
        *sorted(("never_executed", one.pk, 1) for one in late),
        ("other_bytes", other.pk, 1),
    ]


def test_many_who_notice_the_same_raise_one_and_count(gate: Gate) -> None:
    """Each says something else, so that each is kept."""
    execution = states.unknown(gate)
    at_once(*[_saying(execution, number) for number in range(6)])
    assert raised() == [("late_report", execution.pk, 6)]
    assert LateReport.objects.count() == 6


def test_the_same_report_many_times_at_once_is_kept_once(gate: Gate) -> None:
    execution = states.unknown(gate)
    at_once(*[_saying(execution, 1)] * 6)
    assert raised() == [("late_report", execution.pk, 1)]
    assert LateReport.objects.count() == 1


def _saying(execution: Execution, number: int) -> Callable[[], Any]:
    execution = Execution.objects.select_related("grant").get(pk=execution.pk)
    return partial(
        record.record_late_report,
        execution_id=execution.pk,
        fence=execution.fence,
        action_hash=execution.grant.action_hash,
        outcome=executors.build_success({"number": number}),
        actor=claims.EXECUTOR_ACTOR,
    )


def test_of_two_who_close_one_the_first_is_kept(gate: Gate) -> None:
    alarm = states.open_alarm(gate)
    notes = {"sue": "asked again", "sam": "not needed"}
    done = at_once(
        *[
            partial(
                standing.close_alarm,
                alarm_id=alarm.pk,
                person=gate.people[name],
                note=note,
            )
            for name, note in notes.items()
        ]
    )
    assert [one.won for one in done].count(True) == 1
    alarm = Alarm.objects.select_related("closed_by").get()
    assert alarm.closed_by is not None
    assert alarm.note == notes[alarm.closed_by.get_username()]


def test_what_was_refused_is_asked_after_once(gate: Gate) -> None:
    execution = ended(states.queued(gate, "pay_queryable"))
    run.run_execution(execution.pk)
    asked = at_once(*[partial(reconcile.plan_audit, execution_id=execution.pk)] * 6)
    assert [one.value is not None for one in asked].count(True) == 1


def _taken_over(
    gate: Gate, tool: str, monkeypatch: pytest.MonkeyPatch
) -> tuple[Execution, bool]:
    """A worker is held up after its effect until another has done all of it; whether
    that one found it by looking it up."""
    request = propose(gate.agent, tool).request
    decide(request, gate.rita)
    execution = Execution.objects.get(proposal=request.proposal_id)

    def successor() -> None:
        factories.lapsed(execution)
        run.run_execution(execution.pk)

    rival = before(monkeypatch, run, "_record_conclusion", successor)
    run.run_execution(execution.pk)
    assert rival.result.refusal is None
    execution.refresh_from_db()
    assert (execution.status, execution.fence) == ("succeeded", 2)
    return execution, execution.looked_up


def test_a_worker_that_was_held_up_says_what_is_known(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keyed provider answers both: one effect, and nobody is alarmed."""
    execution, _ = _taken_over(gate, "pay", monkeypatch)
    assert len(worlds.effects()) == 1
    assert raised() == []
    kept = LateReport.objects.get()
    assert kept.result_digest == execution.result_digest


def test_what_a_look_up_found_is_no_second_effect(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, looked_up = _taken_over(gate, "pay_queryable", monkeypatch)
    assert looked_up
    assert len(worlds.effects()) == 1
    assert raised() == []


def test_a_provider_that_breaks_its_word_is_found_out(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registered as keyed, and it makes an effect of every call."""
    document = factories.document_of_tests()
    document["tools"]["pay"]["executor"]["path"] = "tests.worlds.careless"
    factories.policy(gate.people, document)
    execution, _ = _taken_over(gate, "pay", monkeypatch)
    assert len(worlds.effects()) == 2
    assert raised() == [("twice", execution.pk, 1)]
