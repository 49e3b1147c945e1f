"""The rota: supervisors plan who is on call for their queues, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from journal import canonical, clock, log
from journal.errors import (
    Conflict,
    FieldError,
    InvalidArgs,
    NotFound,
    NotPermitted,
    build_field_error,
)
from journal.operations import operation
from policies.models import Person, Queue
from policies.people import build_actor
from reviews import locks, permissions
from reviews.models import OnCallShift
from reviews.roles import Permission

LONGEST_SHIFT = timedelta(days=14)
FARTHEST = timedelta(days=366)  # how far ahead a shift may begin


def check_may_plan(person: Person, queue_id: int) -> None:
    """Check that this person is a supervisor of the queue. Raises NotPermitted."""
    permissions.check_permission(person, Permission.PLAN_ON_CALL)
    if queue_id not in permissions.queues_of(person):
        raise NotPermitted("You are not admitted to this queue. Nothing was changed.")


@operation(
    locks="the queue's rota (advisory)", writes="OnCallShift", logs="on_call.planned"
)
def plan_shift(
    *,
    by: Person,
    queue: Queue,
    person: Person,
    begins_at: datetime,
    ends_at: datetime,
    shown: str = "",
) -> OnCallShift:
    """Put a person on call for a queue. `shown` is the `canonical.format_shown` of the
    rota that the planner read; empty without a page. Raises NotPermitted, StaleVersion,
    or InvalidArgs with the fields that are wrong."""
    check_may_plan(by, queue.pk)
    locks.lock_on_call(queue.pk)
    now = clock.now()
    parts = build_shown_rota(queue, now)
    canonical.check_shown(shown, parts, "Nothing was planned.")  # guard: rota-shown
    row = OnCallShift(
        queue=queue,
        person=person,
        begins_at=begins_at,
        ends_at=ends_at,
        planned_by=by.public_id,
        planned_at=now,
    )
    if problems := list(_list_problems(row, now)):
        raise InvalidArgs("Nothing was planned.", errors=problems)
    row.save()
    _log_shift("on_call.planned", row, by, now)
    return row


def build_shown_rota(queue: Queue, now: datetime) -> dict[str, object]:
    """The rota of a queue, which the plan of one more shift is bound to."""
    rows = OnCallShift.objects.filter(queue=queue, ends_at__gt=now).order_by("pk")
    return {f"the shifts of {queue.title}": list(rows.values_list("pk", flat=True))}


def _list_problems(row: OnCallShift, now: datetime) -> Iterator[FieldError]:
    role = permissions.find_deciding_role(row.person)
    if role is None or row.queue_id not in permissions.queues_of(row.person):
        yield build_field_error(
            "person", f"Choose somebody who decides in {row.queue.title}."
        )
    if row.ends_at <= row.begins_at:
        yield build_field_error("ends_at", "Choose an end after the beginning.")
    elif row.ends_at <= now:
        yield build_field_error("ends_at", "Choose an end in the future.")
    elif row.ends_at - row.begins_at > LONGEST_SHIFT:
        yield build_field_error(
            "ends_at", f"Choose an end at most {LONGEST_SHIFT.days} days later."
        )
    if row.begins_at > now + FARTHEST:
        yield build_field_error("begins_at", "Choose a beginning within a year.")
    same = OnCallShift.objects.filter(
        queue=row.queue,
        person=row.person,
        begins_at__lt=row.ends_at,
        ends_at__gt=row.begins_at,
    )
    if same.exists():
        yield build_field_error(
            "begins_at", "They are on call in a part of this time already."
        )


@operation(
    locks="the queue's rota (advisory)", writes="OnCallShift", logs="on_call.ended"
)
def end_shift(*, shift_id: int, by: Person, shown: str = "") -> OnCallShift:
    """End a shift now, or remove one that has not begun. `shown` is the
    `canonical.format_shown` of the shift that the planner read; empty without a page.
    Raises NotFound, NotPermitted, StaleVersion, or Conflict when it is over."""
    rows = OnCallShift.objects.select_related("queue", "person").filter(pk=shift_id)
    shift = rows.first()
    if shift is None:
        raise NotFound
    check_may_plan(by, shift.queue_id)
    locks.lock_on_call(shift.queue_id)
    now = clock.now()
    row = rows.filter(ends_at__gt=now).first()
    if row is None:
        raise Conflict("This shift is over already. Nothing was changed.")
    parts = build_shown_shift(row, now)
    canonical.check_shown(shown, parts, "Nothing was changed.")  # guard: shift-shown
    shift_rows = OnCallShift.objects.filter(pk=shift_id)
    if not shift_rows.filter(begins_at__lt=now).update(ends_at=now):
        shift_rows.delete()
    _log_shift("on_call.ended", row, by, now)
    return row


def build_shown_shift(row: OnCallShift, now: datetime) -> dict[str, object]:
    """The parts of a shift that its form is bound to: one that has begun is ended, and
    a later one leaves the rota."""
    return {
        "its person": row.person_id,
        "its times": [row.begins_at, row.ends_at],
        "whether it has begun": row.begins_at <= now,
    }


def _log_shift(kind: str, row: OnCallShift, by: Person, now: datetime) -> None:
    log.append(
        kind,
        actor=build_actor(by),
        at=now,
        data={
            "queue": row.queue.name,
            "person": row.person.public_id,
            "begins_at": row.begins_at.isoformat(),
            "ends_at": row.ends_at.isoformat(),
        },
    )
