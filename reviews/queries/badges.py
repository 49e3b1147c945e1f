"""The numbers in the header: what needs this person, now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Count, Q

from journal.clock import ClockTimestamp
from policies.choices import Tier
from policies.models import Person

from . import visible

SOON = timedelta(minutes=10)
CAP = 99


@dataclass(frozen=True, slots=True)
class Badges:
    """Undecided, unexpired requests this person can decide; `soon` of them expire."""

    queue: int = 0
    soon: int = 0
    escalations: int = 0


def of(person: Person) -> Badges:
    """Counted anew on every page and every decision, in one query."""
    found = visible.decidable(person).aggregate(
        queue=Count("pk"),
        soon=Count("pk", filter=Q(expires_at__lt=ClockTimestamp() + SOON)),
        escalations=Count("pk", filter=Q(tier=Tier.ESCALATE)),
    )
    return Badges(**{name: n or 0 for name, n in found.items()})


def capped(number: int) -> str:
    """What a badge prints: nothing for none, at most `99+`."""
    if not number:
        return ""
    return f"{CAP}+" if number > CAP else str(number)
