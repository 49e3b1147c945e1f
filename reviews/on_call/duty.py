"""Who is on call for a queue now: by its rota or, while the rota has nobody, by the
people's own preference."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from policies.models import Person
from reviews.models import OnCallShift
from reviews.people import preferences


def select_on_call(
    queue_id: int, people: Collection[Person], now: datetime
) -> set[int]:
    """The primary keys of those of the people who are on call for the queue. One query,
    and one for each person whose preferences are not loaded."""
    planned = set(list_planned_ids([queue_id], now))
    found = {person.pk for person in people if person.pk in planned}
    return found or {person.pk for person in people if _says_on_call(person)}


def list_planned_ids(queue_ids: Iterable[int], now: datetime) -> list[int]:
    """The primary keys of the people who have a shift for one of the queues now."""
    shifts = OnCallShift.objects.filter(
        queue__in=list(queue_ids), begins_at__lte=now, ends_at__gt=now
    )
    return list(shifts.values_list("person", flat=True).distinct())


def _says_on_call(person: Person) -> bool:
    return preferences.load_preferences(person).notifications.on_call
