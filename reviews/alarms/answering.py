"""What a supervisor does with an alarm: look at it, and close it with a note."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction

from journal import clock, log
from journal.errors import Conflict, NotYours, Unwritten
from policies.models import Person
from reviews import locks, permissions, transitions
from reviews.choices import AlarmStatus, ClosedHow
from reviews.models import Alarm
from reviews.permissions import Permission


def check_may_answer(person: Person, alarm: Alarm) -> None:
    """A supervisor of its queue, or any for what is everybody's. Raises NotYours."""
    permissions.check(person, Permission.ANSWER_ALARMS)
    if alarm.queue_id and alarm.queue_id not in permissions.queues_of(person):
        raise NotYours("You are not admitted to this queue. Nothing was recorded.")


@transaction.atomic(durable=True)
def acknowledge(*, alarm_id: int, person: Person) -> Alarm:
    """Say that somebody looks at it. Raises NotFound, NotYours, Conflict."""
    alarm = locks.alarm(alarm_id)
    check_may_answer(person, alarm)
    if alarm.status != AlarmStatus.OPEN:
        raise Conflict("Somebody was at it before you. Nothing was changed.")
    now = clock.now()
    changes = {"acknowledged_by": person, "acknowledged_at": now}
    _apply(alarm, "acknowledge", person, now, changes)
    return alarm


@transaction.atomic(durable=True)
def close(*, alarm_id: int, person: Person, note: str) -> Alarm:
    """Say what it was and what was done about it.

    Raises NotFound, NotYours, Unwritten without a note, Conflict.
    """
    alarm = locks.alarm(alarm_id)
    check_may_answer(person, alarm)
    if not note.strip():
        raise Unwritten(errors=[{"path": "note", "message": "say what you found"}])
    if alarm.status == AlarmStatus.CLOSED:
        raise Conflict("This alarm was closed before you. Your note was not recorded.")
    now = clock.now()
    changes = {
        "closed_by": person,
        "closed_at": now,
        "closed_how": ClosedHow.PERSON,
        "note": note.strip(),
    }
    _apply(alarm, "close", person, now, changes, private={"note": note.strip()})
    return alarm


def _apply(
    alarm: Alarm,
    event: str,
    person: Person,
    now: datetime,
    changes: dict[str, Any],
    **said: Any,
) -> None:
    transitions.alarm.apply(
        alarm,
        event,
        actor=log.Actor("person", person.public_id),
        now=now,
        changes=changes,
        data={"code": str(alarm.kind), "subject": alarm.subject},
        **said,
    )
