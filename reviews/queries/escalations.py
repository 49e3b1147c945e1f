"""What was handed up or needs two people, by answer-by time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from policies.choices import Tier
from policies.models import Person
from reviews import permissions
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest
from reviews.permissions import Permission

from . import queue, visible
from .queue import Row


@dataclass(frozen=True, slots=True)
class EscalationsPage:
    mine: list[Row]
    others: list[Row]

    @property
    def mine_bands(self) -> list[list[Row]]:
        return [self.mine]

    @property
    def other_bands(self) -> list[list[Row]]:
        return [self.others]


def page(person: Person, *, now: datetime) -> EscalationsPage:
    """Those this person can answer first, then those waiting for somebody else."""
    rows = queue.loaded(_open(person, now), person).order_by("expires_at", "pk")[:200]
    can = set(visible.decidable(person).values_list("pk", flat=True))
    return EscalationsPage(
        mine=[queue.row(one, now) for one in rows if one.pk in can],
        others=[queue.row(one, now) for one in rows if one.pk not in can],
    )


def _open(person: Person, now: datetime) -> QuerySet[ApprovalRequest]:
    """All for those who see all; a reviewer only what they escalated themselves."""
    found = visible.requests(person).filter(
        status=RequestStatus.PENDING, expires_at__gt=now, tier=Tier.ESCALATE
    )
    if permissions.allowed(person, Permission.SEE_ALL):
        return found
    return found.filter(versions__escalated_by__contains=[person.public_id]).distinct()
