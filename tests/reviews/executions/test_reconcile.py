"""What nobody knew is asked of the service that knows, for a bounded time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from journal import clock, errors
from journal.models import LogRecord
from policies.choices import Role
from policies.models import Observation
from reviews.choices import AlarmKind, ExecutionStatus
from reviews.executions import claims, reconcile, run, settle
from reviews.executions import record as executions
from reviews.models import Alarm, Execution, Grant, LookUp
from reviews.tool_services.executors import EffectOutcome
from tests import factories, worlds
from tests.conftest import Gate
from tests.reviews import states
from tests.reviews.executions.attempts import ends

PENDING = {"status": "pending"}


def doubtful(gate: Gate, *, ran: bool = False) -> Execution:
    """An effect of a tool that can be looked up, whose outcome is unknown."""
    execution = states.queued(gate, "pay_queryable")
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim is not None
    if ran:
        worlds.plain(claim.call)
    ends(execution, "window")
    executions.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=EffectOutcome("unknown", code="ambiguous", detail="no answer"),
        actor=claims.EXECUTOR_ACTOR,
    )
    return earlier(execution)


def earlier(execution: Execution, **by: Any) -> Execution:
    """The same as if it had begun, and was due to be asked about, so long ago."""
    ago = timedelta(**(by or {"minutes": 5}))
    execution.refresh_from_db()
    moved = {
        name: getattr(execution, name) - ago
        for name in ("claimed_at", "unknown_at", "ask_at")
        if getattr(execution, name) is not None
    }
    Execution.objects.filter(pk=execution.pk).update(**moved)
    execution.refresh_from_db()
    return execution


def looked_up(execution: Execution) -> Execution:
    for pk in reconcile.list_due_look_ups():
        reconcile.look_up_if_due(pk)
    execution.refresh_from_db()
    return execution


def said(execution: Execution) -> list[str]:
    rows = LookUp.objects.filter(execution=execution).order_by("number")
    return list(rows.values_list("said", flat=True))


def test_what_the_service_did_is_found_and_done(gate: Gate) -> None:
    execution = looked_up(doubtful(gate, ran=True))
    assert (execution.status, execution.code) == ("succeeded", "settled_by_look_up")
    assert executions.decrypt_result(execution) == {"seen": 1}
    assert said(execution) == ["succeeded"]
    record = LogRecord.objects.get(kind="execution.settled")
    assert (record.actor_kind, record.actor_id) == ("system", "reconciler")
    assert len(worlds.effects()) == 1, "nothing is performed"
    assert reconcile.list_due_look_ups() == []


def test_what_the_service_never_saw_did_not_happen(gate: Gate) -> None:
    execution = looked_up(doubtful(gate))
    assert (execution.status, said(execution)) == ("failed", ["not_found"])
    assert not Observation.objects.filter(
        proposal=execution.proposal_id, counts=True
    ).exclude(measure__startswith="event:")
    assert worlds.effects() == []


def test_not_seen_yet_is_no_answer_while_it_may_still_be_on_its_way(
    gate: Gate,
) -> None:
    execution = doubtful(gate)
    Execution.objects.filter(pk=execution.pk).update(claimed_at=clock.now())
    execution = looked_up(execution)
    assert (execution.status, said(execution)) == ("unknown", ["not_found"])


def test_it_is_asked_ever_more_rarely_and_not_for_ever(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "find", lambda call: PENDING)
    execution, waits = doubtful(gate), []
    while execution.ask_at is not None:
        before = execution.unknown_at
        execution = looked_up(execution)
        if execution.ask_at is not None:
            waits.append((execution.ask_at - clock.now()).total_seconds())
            wait = {"seconds": waits[-1] + 1}
            execution = earlier(execution, **wait)
        assert before is not None
    assert [round(one, -1) for one in waits[:4]] == [60, 120, 240, 480]
    assert max(waits) <= 3600
    assert len(waits) < 40, "for a day and no longer"
    assert execution.status == ExecutionStatus.UNKNOWN
    assert set(said(execution)) == {"unknown"}
    assert reconcile.list_due_look_ups() == []


def test_it_is_asked_only_when_it_is_time(gate: Gate) -> None:
    execution = doubtful(gate, ran=True)
    later = clock.now() + timedelta(minutes=1)
    Execution.objects.filter(pk=execution.pk).update(ask_at=later)
    assert reconcile.list_due_look_ups() == []
    assert reconcile.look_up_if_due(execution.pk) is None
    assert said(execution) == []


def test_a_supervisor_has_it_looked_up_at_once(gate: Gate) -> None:
    execution = doubtful(gate, ran=True)
    Execution.objects.filter(pk=execution.pk).update(ask_at=None)
    reconcile.look_up_for_person(execution.pk, gate.sue)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.SUCCEEDED
    row = LookUp.objects.get()
    assert (row.by_kind, row.by_id) == ("person", gate.sue.public_id)
    with pytest.raises(errors.Conflict):
        reconcile.look_up_for_person(execution.pk, gate.sue)


@pytest.mark.parametrize("name", ["rita", "adam", "otto", "owen"])
def test_who_does_not_settle_does_not_look_up(gate: Gate, name: str) -> None:
    execution = doubtful(gate)
    with pytest.raises(errors.NotPermitted):
        reconcile.look_up_for_person(execution.pk, gate.people[name])


def test_what_cannot_be_looked_up_is_a_persons_question(gate: Gate) -> None:
    execution = earlier(Execution.objects.get(pk=states.unknown(gate).pk))
    assert (execution.ask_at, reconcile.list_due_look_ups()) == (None, [])
    with pytest.raises(errors.Conflict):
        reconcile.look_up_for_person(execution.pk, gate.sue)


def test_an_answer_that_a_person_gave_meanwhile_stands(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = doubtful(gate, ran=True)

    def find(call: Any) -> dict[str, Any]:
        settle.settle_unknown(
            execution_id=execution.pk, person=gate.sue, happened=False, reason="seen"
        )
        return {"status": "succeeded"}

    monkeypatch.setattr(worlds, "find", find)
    execution = looked_up(execution)
    assert (execution.status, execution.code) == ("failed", "settled_by_person")
    assert said(execution) == ["succeeded"], "and what the service said is there to see"
    alarm = Alarm.objects.get()
    assert (alarm.kind, alarm.subject) == (AlarmKind.LATE_REPORT, execution.pk)


def test_what_was_unknown_once_is_looked_up_before_it_is_tried_again(
    gate: Gate,
) -> None:
    """A person may have been wrong when they said that it did not happen."""
    execution = doubtful(gate, ran=True)
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=False, reason="not there"
    )
    execution = tried_again(execution, gate)
    assert (execution.status, execution.looked_up) == ("succeeded", True)
    assert len(worlds.effects()) == 1


def test_what_a_look_up_said_had_failed_is_performed_when_it_is_tried_again(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service says so still, and that is why it is tried again."""
    execution = doubtful(gate)
    monkeypatch.setattr(worlds, "find", lambda call: {"status": "failed"})
    assert looked_up(execution).status == ExecutionStatus.FAILED
    execution = tried_again(execution, gate)
    assert (execution.status, execution.looked_up) == ("succeeded", False)
    assert len(worlds.effects()) == 1


def tried_again(execution: Execution, gate: Gate) -> Execution:
    """By a person, while there is time."""
    window = clock.now() + timedelta(minutes=5)
    worlds.rewrite(Grant, execution.grant_id, expires_at=window)
    settle.retry_execution(execution_id=execution.pk, person=gate.rita)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    return execution


def test_nobody_settles_their_own_run(gate: Gate) -> None:
    execution = doubtful(gate)
    stranger = factories.person("oz", Role.SUPERVISOR)
    proposal = execution.proposal
    worlds.rewrite(type(proposal), proposal.pk, barred=[gate.sue.public_id])
    for person in (gate.sue, stranger):
        with pytest.raises(errors.NotPermitted):
            settle.settle_unknown(
                execution_id=execution.pk, person=person, happened=True, reason="mine"
            )


def test_a_keyed_provider_that_cannot_say_is_asked_for_the_effect(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"]["look_up"] = {"path": "tests.worlds.find"}
    factories.policy(gate.people, document)
    execution = states.queued(gate)
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim is not None
    worlds.keyed(claim.call)
    factories.lapsed(execution)
    monkeypatch.setattr(worlds, "find", lambda call: PENDING)
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    assert (execution.status, len(worlds.effects())) == ("succeeded", 1)


def test_an_answer_about_another_attempt_settles_nothing(gate: Gate) -> None:
    """It came while somebody had it tried again, and that became unknown as well."""
    execution = doubtful(gate)
    asked = reconcile.plan_look_up(execution_id=execution.pk)
    assert asked is not None
    Execution.objects.filter(pk=execution.pk).update(fence=2)
    failed = EffectOutcome("failed", code="declined")
    reconcile.record_look_up(asked=asked, outcome=failed, actor=reconcile.RECONCILER)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.UNKNOWN
    assert LookUp.objects.get(execution=execution).said == "failed"
