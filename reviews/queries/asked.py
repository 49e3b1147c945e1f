"""Requests with all that is told of them to one person, for a page of any size in the
same few queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet

from policies.models import Person
from reviews import membership, permissions, state_readings
from reviews.choices import RequestStatus
from reviews.cursors import Place
from reviews.models import (
    ApprovalRequest,
    Decision,
    RequestVersion,
    Revision,
    StateReading,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it is asked now, and whether this person may answer it."""

    request: ApprovalRequest
    version: RequestVersion
    given: list[int]  # approvals that count, by the place of their step
    why_not: str
    newest: StateReading | None  # None while the revision's own holds

    @property
    def revision(self) -> Revision:
        return self.version.revision

    @property
    def can_decide(self) -> bool:
        return not self.why_not and self.request.status == RequestStatus.PENDING

    @property
    def steps(self) -> list[dict[str, object]]:
        return [
            {
                "role": step["role"],
                "required": step["required"],
                "given": self.given.count(place),
            }
            for place, step in enumerate(self.version.steps)
        ]

    @property
    def reading(self) -> str:
        """The digest of the state that a verdict would be on."""
        return state_readings.digest_of(self.newest, self.revision)


def after(
    rows: QuerySet[ApprovalRequest], place: Place | None
) -> QuerySet[ApprovalRequest]:
    """What follows a place, the nearest deadline first, as `of` wants it."""
    found = rows.select_related("proposal", "queue").order_by("expires_at", "pk")
    if place is None:
        return found
    same = Q(expires_at=place.at, pk__gt=place.pk)
    return found.filter(Q(expires_at__gt=place.at) | same)


def of(person: Person, requests: Collection[ApprovalRequest]) -> list[Asked]:
    """These requests, in their order, in six queries however many there are. They
    were loaded with their proposals and queues."""
    ids = [request.pk for request in requests]
    versions = membership.sealed(requests)
    readings = state_readings.newest_of(one.revision for one in versions.values())
    given, known = _given(ids), permissions.known(person, ids)
    found = []
    for request in requests:
        version = versions[request.pk]
        why_not = permissions.can_decide(person, request, version, known)
        newest = readings.get(version.revision_id)
        found.append(Asked(request, version, given[request.pk], why_not, newest))
    return found


def _given(ids: Collection[str]) -> dict[str, list[int]]:
    votes = Decision.objects.filter(
        request__in=ids, version=F("request__version"), counts=True
    )
    found: dict[str, list[int]] = defaultdict(list)
    for request, step in votes.values_list("request_id", "step"):
        if step is not None:  # what counts has a place: the database says so
            found[request].append(step)
    return found
