"""Mending by hand: proposed by one, confirmed by a second of another role."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import Error as DatabaseError
from django.db import transaction
from django.db.models import F

from agents import checkpoints, repairs
from agents.models import Checkpoint, Thread
from journal import clock, errors
from journal.models import LogRecord
from reviews.choices import (
    ExecutionStatus,
    RepairChange,
    RepairStatus,
    RequestStatus,
)
from reviews.executions import repairs as gate_repairs
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    Grant,
    Proposal,
    Repair,
    Revision,
)
from tests import worlds
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews import states

WHY = "Its worker's machine burnt down."
LEFT = {
    "summary": "waits",
    "state": {"step": 2},
    "blob": "c2VjcmV0",
    "resume_at": "pay",
}


def stuck(gate: Gate) -> Execution:
    """Claimed, and its lease over for so long that nobody goes on with it."""
    execution = states.claimed(gate)
    lease = clock.now() - timedelta(minutes=6)
    Execution.objects.filter(pk=execution.pk).update(lease_until=lease)
    return execution


def never_taken(gate: Gate, tool: str = "pay") -> Execution:
    execution = states.queued(gate, tool)
    past = clock.now() - timedelta(minutes=6)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    return execution


def dead(gate: Gate) -> Thread:
    """A run with an open request, of which nobody heard for long."""
    proposal = propose(gate.agent, checkpoint=LEFT, customer="C-9")
    ago = clock.now() - timedelta(minutes=11)
    Proposal.objects.filter(pk=proposal.pk).update(created_at=ago)
    Thread.objects.update(started_at=ago)
    return Thread.objects.get()


def of_execution(
    execution: Execution, person: Any, change: RepairChange = RepairChange.SAY_UNKNOWN
) -> Repair:
    return gate_repairs.propose_repair(
        execution_id=execution.pk, change=change, person=person, reason=WHY
    )


def of_run(thread: Thread, person: Any, **fields: Any) -> Repair:
    said = {"change": RepairChange.FINISH, **fields}
    return repairs.propose_repair(
        agent=thread.agent, name=thread.name, person=person, reason=WHY, **said
    )


def corrected(thread: Thread, person: Any, **fields: Any) -> Repair:
    said = {"resume_at": "refund", "state": '{"step": 3}', **fields}
    return of_run(thread, person, change=RepairChange.CHECKPOINT, **said)


def test_what_is_stuck_becomes_a_question_of_two_people(gate: Gate) -> None:
    execution = stuck(gate)
    repair = of_execution(execution, gate.sue)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.CLAIMED, "proposing changes nothing"
    gate_repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)
    execution.refresh_from_db()
    repair.refresh_from_db()
    assert (execution.status, execution.code) == ("unknown", "repaired")
    assert (repair.status, repair.settled_by) == ("applied", gate.adam.public_id)
    record = LogRecord.objects.get(kind="repair.applied")
    assert record.actor_id == gate.adam.public_id
    values = record.payload.values
    assert '"status":"claimed"' in values["before"]
    assert '"status":"unknown"' in values["after"]


def test_what_never_ran_in_time_is_refused(gate: Gate) -> None:
    execution = never_taken(gate)
    repair = of_execution(execution, gate.sue, RepairChange.NEVER_RUN)
    gate_repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.REFUSED
    assert execution.grant.status == "expired"
    assert worlds.effects() == []


def test_a_dead_agents_run_ends_and_what_it_asked_is_withdrawn(gate: Gate) -> None:
    thread = dead(gate)
    repair = of_run(thread, gate.sue)
    repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)
    thread.refresh_from_db()
    assert (thread.status, thread.result) == ("finished", "failed")
    assert ApprovalRequest.objects.get().status == RequestStatus.WITHDRAWN


def test_a_checkpoint_gets_a_new_version_and_keeps_the_old_one(gate: Gate) -> None:
    thread = dead(gate)
    old = checkpoints.find_latest_checkpoint(thread)
    repair = corrected(thread, gate.sue)
    repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)
    new = checkpoints.find_latest_checkpoint(thread)
    assert old is not None
    assert new is not None
    assert (new.number, new.resume_at, new.state) == (2, "refund", {"step": 3})
    assert (new.repair, new.proposal) == (repair.pk, old.proposal)
    assert checkpoints.decrypt_blob(new) == b"secret", (
        "the sealed state goes along as it is"
    )
    kept = Checkpoint.objects.get(number=1)
    assert (kept.state, kept.resume_at) == ({"step": 2}, "pay")


def test_one_person_is_not_two(gate: Gate) -> None:
    gate.sue.groups.add(*gate.adam.groups.all())
    both = type(gate.sue).objects.get(pk=gate.sue.pk)
    thread = dead(gate)
    repair = of_run(thread, both)
    for person in (both, gate.sam, gate.rita, gate.otto, gate.owen):
        with pytest.raises(errors.NotPermitted):
            repairs.confirm_repair(repair_id=repair.pk, person=person)
    with pytest.raises(DatabaseError), transaction.atomic():
        Repair.objects.filter(pk=repair.pk).update(
            status="applied", settled_by=both.public_id, settled_at=clock.now()
        )


@pytest.mark.parametrize("name", ["rita", "adam", "otto", "owen"])
def test_only_a_supervisor_proposes(gate: Gate, name: str) -> None:
    execution = stuck(gate)
    with pytest.raises(errors.NotPermitted):
        of_execution(execution, gate.people[name])
    with pytest.raises(errors.NotPermitted):
        corrected(dead(gate), gate.people[name])
    assert not Repair.objects.exists()


def moves_on(execution: Execution) -> None:
    Execution.objects.filter(pk=execution.pk).update(fence=F("fence") + 1)


def test_what_moved_since_is_not_mended(gate: Gate) -> None:
    execution = stuck(gate)
    repair = of_execution(execution, gate.sue)
    moves_on(execution)
    with pytest.raises(errors.Conflict):
        gate_repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.CLAIMED
    repair.refresh_from_db()
    assert repair.status == RepairStatus.PROPOSED


@pytest.mark.parametrize("propose_one", [of_run, corrected])
def test_a_run_that_shows_life_is_not_mended(
    gate: Gate, propose_one: Callable[..., Repair]
) -> None:
    thread = dead(gate)
    repair = propose_one(thread, gate.sue)
    propose(gate.agent, checkpoint={**LEFT, "state": {"step": 9}})
    with pytest.raises(errors.Conflict):
        repairs.confirm_repair(repair_id=repair.pk, person=gate.adam)
    thread.refresh_from_db()
    assert thread.status == "running"


def test_what_needs_none_gets_none(gate: Gate) -> None:
    execution = states.claimed(gate)
    with pytest.raises(errors.Conflict):
        of_execution(execution, gate.sue)
    with pytest.raises(errors.Conflict):
        of_execution(states.queued(gate), gate.sue, RepairChange.NEVER_RUN)
    for change in (RepairChange.FINISH, RepairChange.CHECKPOINT):
        with pytest.raises(errors.Conflict):
            of_execution(execution, gate.sue, change)
    with pytest.raises(errors.Conflict):
        of_run(Thread.objects.get(), gate.sue)


def test_one_open_repair_of_a_thing(gate: Gate) -> None:
    execution = stuck(gate)
    of_execution(execution, gate.sue)
    with pytest.raises(errors.Conflict):
        of_execution(execution, gate.sam)


def test_it_can_be_refused_and_taken_back_and_lapses(gate: Gate) -> None:
    execution = stuck(gate)
    first = of_execution(execution, gate.sue)
    with pytest.raises(errors.NotPermitted):
        gate_repairs.refuse_repair(repair_id=first.pk, person=gate.sam, answer="no")
    with pytest.raises(errors.ReasonMissing):
        gate_repairs.refuse_repair(repair_id=first.pk, person=gate.adam, answer=" ")
    gate_repairs.refuse_repair(repair_id=first.pk, person=gate.adam, answer="wait")
    second = of_execution(execution, gate.sue)
    gate_repairs.refuse_repair(repair_id=second.pk, person=gate.sue, answer="mine")
    third = of_execution(execution, gate.sue)
    assert gate_repairs.lapse_repairs() == 0
    worlds.rewrite(Repair, third.pk, lapses_at=clock.now())
    with pytest.raises(errors.Conflict):
        gate_repairs.confirm_repair(repair_id=third.pk, person=gate.adam)
    assert gate_repairs.lapse_repairs() == 1
    said = Repair.objects.order_by("proposed_at").values_list("status", flat=True)
    assert list(said) == ["refused", "refused", "lapsed"]
    execution.refresh_from_db()
    assert execution.status == ExecutionStatus.CLAIMED


@pytest.mark.parametrize("typed", ["", "[1]", '{"a": 1, "a": 2}', "{"])
def test_a_state_is_a_strict_object(gate: Gate, typed: str) -> None:
    with pytest.raises(errors.InvalidInput):
        corrected(dead(gate), gate.sue, state=typed)


def test_a_typed_state_is_redacted_like_the_agents_own(gate: Gate) -> None:
    repair = corrected(dead(gate), gate.sue, state='{"to": "casey@mail.example"}')
    assert "casey@mail.example" not in str(repair.after)


def test_no_repair_touches_bytes_votes_or_the_log(gate: Gate) -> None:
    """All four, and what they may never change is as it was, to the letter."""
    thread = dead(gate)
    execution, late = stuck(gate), never_taken(gate, "pay_queryable")

    def sealed() -> list[Any]:
        models = (Revision, Decision, LogRecord)
        return [list(one.objects.order_by("pk").values()) for one in models]

    before = sealed()
    records = LogRecord.objects.count()
    first = of_execution(execution, gate.sue)
    second = of_execution(late, gate.sue, RepairChange.NEVER_RUN)
    third = corrected(thread, gate.sue)
    for one in (first, second):
        gate_repairs.confirm_repair(repair_id=one.pk, person=gate.adam)
    repairs.confirm_repair(repair_id=third.pk, person=gate.adam)
    after = sealed()
    assert after[:2] == before[:2]
    assert after[2][:records] == before[2], "the log only grew"
    statuses = set(ApprovalRequest.objects.values_list("status", flat=True))
    assert statuses == {"pending", "authorized"}


def test_the_row_itself_never_changes(gate: Gate) -> None:
    repair = of_execution(stuck(gate), gate.sue)
    changes: list[dict[str, Any]]
    changes = [{"after": {}}, {"before": {}}, {"reason": "x"}, {"key": "x"}]
    for change in changes:
        with pytest.raises(DatabaseError), transaction.atomic():
            Repair.objects.filter(pk=repair.pk).update(**change)
