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
    found = _open(person, now).order_by("expires_at", "pk")
    ids = list(found.values_list("pk", flat=True)[:200])
    can = set(visible.decidable(person).filter(pk__in=ids).values_list("pk", flat=True))
    rows = queue.rows_of(ids, person, now)
    return EscalationsPage(
        mine=[row for row in rows if row.id in can],
        others=[row for row in rows if row.id not in can],
    )


def _open(person: Person, now: datetime) -> QuerySet[ApprovalRequest]:
    """All for those who see all; a reviewer only what they escalated themselves."""
    found = visible.requests(person).filter(
        status=RequestStatus.PENDING, expires_at__gt=now, tier=Tier.ESCALATE
    )
    if permissions.allowed(person, Permission.SEE_ALL):
        return found
    return found.filter(versions__escalated_by__contains=[person.public_id]).distinct()
