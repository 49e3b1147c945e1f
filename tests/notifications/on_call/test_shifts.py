"""The rota: who may plan, what is refused, and whom a shift makes reachable."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Any

import pytest
from django.core import mail

from journal import clock
from journal.errors import Conflict, InvalidArgs, NotPermitted
from journal.models import LogRecord
from notifications.on_call import duty, shifts
from policies.models import Person, Queue
from reviews.models import OnCallShift
from reviews.people import preferences
from reviews.people.preferences import NotificationPreferences
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.hitl.tasks.draining import drain

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
ASLEEP = {"quiet_from": time(0), "quiet_until": time(23, 59, 59)}


@pytest.fixture
def queue(gate: Gate) -> Queue:
    return propose(gate.agent).request.queue


def plan(
    queue: Queue, by: Person, person: Person, begins: timedelta = -HOUR, **more: Any
) -> OnCallShift:
    now: datetime = clock.now()
    lasts = more.get("lasts", 8 * HOUR)
    return shifts.plan_shift(
        by=by,
        queue=queue,
        person=person,
        begins_at=now + begins,
        ends_at=now + begins + lasts,
    )


def test_a_supervisor_of_the_queue_plans_and_ends_a_shift(
    gate: Gate, queue: Queue
) -> None:
    for other in (gate.rita, gate.adam, gate.otto):
        with pytest.raises(NotPermitted):
            plan(queue, other, gate.tom)
    shift = plan(queue, gate.sue, gate.tom)
    later = plan(queue, gate.sue, gate.tom, begins=9 * HOUR)
    people = [gate.tom, gate.rita]
    assert duty.select_on_call(queue.pk, people, clock.now()) == {gate.tom.pk}
    shifts.end_shift(shift_id=shift.pk, by=gate.sue)
    shifts.end_shift(shift_id=later.pk, by=gate.sue)
    assert duty.select_on_call(queue.pk, people, clock.now()) == set()
    assert OnCallShift.objects.get().pk == shift.pk, "what has not begun is removed"
    with pytest.raises(Conflict, match="over already"):
        shifts.end_shift(shift_id=shift.pk, by=gate.sue)
    kinds = LogRecord.objects.filter(kind__startswith="on_call.").order_by("id")
    assert [one.kind.partition(".")[2] for one in kinds] == [
        *("planned", "planned", "ended", "ended"),
    ]


@pytest.mark.parametrize(
    ("who", "begins", "lasts", "field"),
    [
        ("adam", -HOUR, 8 * HOUR, "person"),
        ("tom", HOUR, -HOUR, "ends_at"),
        ("tom", -9 * HOUR, 8 * HOUR, "ends_at"),
        ("tom", HOUR, timedelta(days=15), "ends_at"),
        ("tom", timedelta(days=400), HOUR, "begins_at"),
        ("rita", HOUR, HOUR, "begins_at"),  # she is on call then already
    ],
)
def test_a_shift_that_makes_no_sense_names_its_field(
    gate: Gate, queue: Queue, who: str, begins: timedelta, lasts: timedelta, field: str
) -> None:
    plan(queue, gate.sue, gate.rita)
    with pytest.raises(InvalidArgs) as refused:
        plan(queue, gate.sue, gate.people[who], begins, lasts=lasts)
    assert [one["path"] for one in refused.value.errors] == [field]


def test_the_rota_goes_before_the_peoples_own_setting(gate: Gate, queue: Queue) -> None:
    preferences.save_preferences(
        person=gate.sue, notifications=NotificationPreferences(on_call=True)
    )
    people = [gate.sue, gate.rita]
    assert duty.select_on_call(queue.pk, people, clock.now()) == {gate.sue.pk}
    plan(queue, gate.sue, gate.rita)
    assert duty.select_on_call(queue.pk, people, clock.now()) == {gate.rita.pk}


def test_a_shift_finds_people_in_their_quiet_hours(gate: Gate, queue: Queue) -> None:
    """Of two supervisors who sleep, the one on call is woken, and only by what is
    urgent."""
    for person in (gate.sue, gate.sam):
        preferences.save_preferences(
            person=person, notifications=NotificationPreferences(**ASLEEP)
        )
    plan(queue, gate.sue, gate.sam)
    request = propose(gate.agent, customer="C-2").request
    drain("request.opened")
    assert not {"sue@example.com", "sam@example.com"} & mailed()
    decide(request, gate.rita, "escalate")
    drain("request.escalated")
    assert {"sue@example.com", "sam@example.com"} & mailed() == {"sam@example.com"}


def mailed() -> set[str]:
    return {one.to[0] for one in mail.outbox}
