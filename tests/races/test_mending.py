"""Of two who undo, mend or settle the same thing at once, one is heard."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from agents import repairs as runs
from agents import reversals
from journal import errors
from journal.models import LogRecord
from reviews.choices import ExecutionStatus, RepairStatus
from reviews.executions import reconcile, repairs
from reviews.executions import settle as settlements
from reviews.models import ApprovalRequest, Execution, Repair, Reversal
from reviews.tool_services import executors
from tests.agents.test_repairs import corrected, dead, of_execution, stuck
from tests.conftest import Gate
from tests.races.together import at_once, before
from tests.reviews import states
from tests.reviews.executions.test_reconcile import doubtful

pytestmark = [pytest.mark.django_db(transaction=True)]
WHY = "It was paid twice."


def test_of_two_who_undo_an_effect_one_proposes(gate: Gate) -> None:
    paid = states.succeeded(gate)
    undo = partial(reversals.propose_reversal, execution_id=paid.pk, reason=WHY)
    people = [gate.tom, gate.rita, gate.sue, gate.sam]
    results = at_once(*[partial(undo, person=one) for one in people])
    assert [r.won for r in results].count(True) == 1
    assert {type(r.refusal) for r in results if r.refusal} == {errors.Conflict}
    assert Reversal.objects.filter(over_at__isnull=True).count() == 1
    assert ApprovalRequest.objects.filter(proposal__source="reversal").count() == 1


def test_of_two_who_confirm_a_repair_one_applies_it(gate: Gate) -> None:
    repair = of_execution(stuck(gate), gate.sue)
    confirm = partial(repairs.confirm_repair, repair_id=repair.pk)
    results = at_once(
        partial(confirm, person=gate.adam), partial(confirm, person=gate.alma)
    )
    assert [r.won for r in results].count(True) == 1
    assert LogRecord.objects.filter(kind="repair.applied").count() == 1


def test_a_repair_is_applied_or_refused_and_never_both(gate: Gate) -> None:
    repair = corrected(dead(gate), gate.sue)
    results = at_once(
        partial(runs.confirm_repair, repair_id=repair.pk, person=gate.adam),
        partial(
            repairs.refuse_repair, repair_id=repair.pk, person=gate.alma, answer="no"
        ),
    )
    assert [r.won for r in results].count(True) == 1
    kinds = LogRecord.objects.filter(kind__in=["repair.applied", "repair.refused"])
    assert kinds.count() == 1
    assert Repair.objects.get().status != RepairStatus.PROPOSED


def test_of_a_look_up_and_a_person_one_settles(gate: Gate) -> None:
    execution = doubtful(gate, ran=True)
    results = at_once(
        partial(reconcile.look_up_if_due, execution.pk),
        partial(
            settlements.settle_unknown,
            execution_id=execution.pk,
            person=gate.sue,
            happened=False,
            reason="not in the ledger",
        ),
    )
    assert results[0].won
    settled = LogRecord.objects.filter(kind="execution.settled")
    assert settled.count() == 1
    found = Execution.objects.get(pk=execution.pk)
    by_person = settled.get().actor_kind == "person"
    assert found.status == ("failed" if by_person else "succeeded")


def test_who_answers_while_the_service_is_asked_is_heard(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same at exactly one place: nobody holds a lock while the service thinks."""
    execution = doubtful(gate, ran=True)
    settle = partial(
        settlements.settle_unknown,
        execution_id=execution.pk,
        person=gate.sue,
        happened=False,
        reason="not in the ledger",
    )
    rival = before(monkeypatch, executors, "look_up_effect", settle)
    reconcile.look_up_if_due(execution.pk)
    assert rival.result.won
    found: Any = Execution.objects.get(pk=execution.pk)
    assert (found.status, found.code) == (ExecutionStatus.FAILED, "settled_by_person")


def test_of_many_sweeps_one_asks(gate: Gate) -> None:
    execution = doubtful(gate)
    results = at_once(*[partial(reconcile.look_up_if_due, execution.pk)] * 6)
    assert [r.value is not None for r in results].count(True) == 1
    assert Execution.objects.get(pk=execution.pk).asked == 1
