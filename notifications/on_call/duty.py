"""Who is on call for a queue now: by its rota or, while the rota has nobody, by the
people's own preference."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from policies.models import Person
from reviews.models import OnCallShift
from reviews.people import preferences


def select_on_call(
    queue_id: int, people: Collection[Person], now: datetime
) -> set[int]:
    """The primary keys of those of the people who are on call for the queue. One query,
    and one for each person whose preferences are not loaded."""
    return select_planned(queue_id, people, now) or select_willing(people)


def select_planned(
    queue_id: int, people: Collection[Person], now: datetime
) -> set[int]:
    """The primary keys of those of the people who have a shift for the queue now."""
    planned = list_planned_ids(queue_id, now)
    return {person.pk for person in people if person.pk in planned}


def select_willing(people: Collection[Person]) -> set[int]:
    """The primary keys of those of the people whose preference says that they are on
    call."""
    return {
        person.pk
        for person in people
        if preferences.load_preferences(person).notifications.on_call
    }


def list_planned_ids(queue_id: int, now: datetime) -> set[int]:
    """The primary keys of the people who have a shift for the queue now."""
    shifts = OnCallShift.objects.filter(
        queue=queue_id, begins_at__lte=now, ends_at__gt=now
    )
    return set(shifts.values_list("person", flat=True))
