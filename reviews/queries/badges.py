"""The numbers in the header: what needs this person, now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Q

from journal.clock import ClockTimestamp
from policies.choices import Tier
from policies.models import Person
from reviews import permissions
from reviews.choices import ExecutionStatus
from reviews.models import Execution
from reviews.permissions import Permission

from . import visible

SOON = timedelta(minutes=10)
CAP = 99


@dataclass(frozen=True, slots=True)
class Badges:
    """Undecided, unexpired requests this person can decide; `soon` of them expire."""

    queue: int = 0
    soon: int = 0
    escalations: int = 0
    unknown: int = 0


def of(person: Person) -> Badges:
    """Counted anew on every page and every decision (two queries at most)."""
    found = visible.decidable(person).aggregate(
        queue=Count("pk"),
        soon=Count("pk", filter=Q(expires_at__lt=ClockTimestamp() + SOON)),
        escalations=Count("pk", filter=Q(tier=Tier.ESCALATE)),
    )
    return Badges(
        **{name: n or 0 for name, n in found.items()}, unknown=_unknown(person)
    )


def _unknown(person: Person) -> int:
    if not permissions.allowed(person, Permission.SETTLE_UNKNOWN):
        return 0
    return Execution.objects.filter(
        status=ExecutionStatus.UNKNOWN,
        grant__revision__tool__queue__in=permissions.queues_of(person),
    ).count()


def capped(number: int) -> str:
    """What a badge prints: nothing for none, at most `99+`."""
    if not number:
        return ""
    return f"{CAP}+" if number > CAP else str(number)
