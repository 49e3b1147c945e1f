"""A database that is older than what was seen of it, and who looks at it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from journal import clock, high_water_mark, restore_epochs
from journal.models import Epoch
from policies.models import Observation
from reviews import recovery
from reviews.executions import repairs
from reviews.models import Execution, Grant
from tests.conftest import Gate
from tests.factories import decide, propose


def seen() -> high_water_mark.HighWaterMark:
    found = high_water_mark.read_mark()
    assert found is not None
    return found


def restore_an_older_one() -> None:
    """As if the database had lost its last ten records."""
    restore_epochs.advance_mark()
    now = seen()
    high_water_mark.write_mark(replace(now, record=now.record + 10, leaf="00" * 32))


def queued(gate: Gate, tool: str = "pay") -> Execution:
    request = propose(gate.agent, tool).request
    decide(request, gate.rita)
    return Execution.objects.get(proposal=request.proposal_id)


def two_people_look(gate: Gate) -> Epoch:
    recovery.confirm_restore(person=gate.sue, reason="the disk died")
    return recovery.confirm_restore(person=gate.sam, reason="seen the books")


def restored(gate: Gate, *, looked: bool = True) -> None:
    """An older database, and two people who looked already or not yet."""
    restore_an_older_one()
    if looked:
        two_people_look(gate)
        restore_epochs.accept_epoch()


def weighs(proposal_id: str) -> set[bool]:
    rows = Observation.objects.filter(proposal=proposal_id)
    return set(rows.values_list("counts", flat=True))


def out_of_time(gate: Gate) -> Execution:
    """Approved, and queued still though its window is over."""
    execution = queued(gate, "pay_queryable")
    past = clock.now() - repairs.STUCK_AFTER - timedelta(minutes=1)
    Grant.objects.filter(pk=execution.grant_id).update(expires_at=past)
    Execution.objects.filter(pk=execution.pk).update(due_at=past)
    return execution
