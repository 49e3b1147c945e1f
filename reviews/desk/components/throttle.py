"""A pause for somebody who approves without end: who is tired approves what they see
(ux.md 3.10, `throttle`). Only pages ask for it, and only where something would happen:
what stops an effect is never held up. A batch is one decision."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Count, Q

from journal.errors import DomainError, Throttle
from policies.models import Person
from reviews.effects.wording import people
from reviews.models import Decision

WINDOW = timedelta(minutes=10)
RETRY_AFTER_S = 60


def objection(person: Person, *, most: int, now: datetime) -> DomainError | None:
    """What the page has against another approval; None below `most` in ten minutes, or
    where `most` is 0. One query."""
    count = _decided(person, now - WINDOW) if most else 0
    if count < most or not most:
        return None
    minutes = WINDOW // timedelta(minutes=1)
    return Throttle(
        f"You have decided {people(count, 'item')} in {minutes} minutes. "
        "Nothing was recorded. "
        "Take a minute, then commit again; your note is kept.",
        retry_after=RETRY_AFTER_S,
    )


def _decided(person: Person, since: datetime) -> int:
    in_batches = Q(authority__has_key="batch")
    found = Decision.objects.filter(reviewer=person, at__gt=since).aggregate(
        alone=Count("pk", filter=~in_batches),
        batches=Count("authority__batch", filter=in_batches, distinct=True),
    )
    return int(found["alone"] + found["batches"])
