"""Which alarms a person is shown, and how many of them nobody looks at yet."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.models import Alarm
from reviews.permissions import Permission


def visible(person: Person) -> QuerySet[Alarm]:
    """Who checks or administers sees all; a supervisor those of their queues, and what
    is everybody's."""
    if not permissions.allowed(person, Permission.SEE_ALARMS):
        return Alarm.objects.none()
    if sees_all(person):
        return Alarm.objects.all()
    return Alarm.objects.filter(
        Q(queue__in=permissions.queues_of(person)) | Q(queue__isnull=True)
    )


def sees_all(person: Person) -> bool:
    """Whether the person sees the alarms of every queue."""
    roles = permissions.roles_of(person)
    return bool(roles & {Role.ADMINISTRATOR, Role.AUDITOR})
