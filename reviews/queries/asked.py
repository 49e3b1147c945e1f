"""Requests with all that is told of them to one person, for a page of any size in the
same few queries."""

from __future__ import annotations

import functools
from collections.abc import Collection
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from policies.models import Person
from reviews import permissions
from reviews.batches import membership
from reviews.choices import RequestStatus, Verdict
from reviews.desk.components import choice
from reviews.desk.components.cursors import Place
from reviews.governance import readings as state_readings
from reviews.governance import voters
from reviews.models import ApprovalRequest, RequestVersion, Revision, StateReading


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it is asked now, and whether this person may answer it."""

    request: ApprovalRequest
    version: RequestVersion
    given: list[int]  # approvals that count, by the place of their step
    why_not: str  # why an approval would not be taken from this person
    verdicts: list[Verdict]  # what would be
    newest: StateReading | None  # None while the revision's own holds

    @property
    def revision(self) -> Revision:
        return self.version.revision

    @property
    def can_decide(self) -> bool:
        return Verdict.APPROVE in self.verdicts

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
    """These requests, in their order, in eight queries however many there are, and two
    for each of their queues. They were loaded with their proposals and queues."""
    ids = [request.pk for request in requests]
    versions = membership.sealed(requests)
    readings = state_readings.newest_of(one.revision for one in versions.values())
    counted, known = voters.counted(ids), permissions.known(person, ids)
    deciders = functools.cache(voters.of_queue)
    found = []
    for request in requests:
        version, votes = versions[request.pk], counted[request.pk]
        why_not = permissions.can_decide(person, request, version, known)
        verdicts: list[Verdict] = []
        if not why_not and request.status == RequestStatus.PENDING:
            people = deciders(request.queue_id)
            chosen = choice.choice(person, request, version, votes, people)
            why_not, verdicts = chosen.why_not_approve, chosen.verdicts
        newest = readings.get(version.revision_id)
        given = [step for step, _ in votes]
        found.append(Asked(request, version, given, why_not, verdicts, newest))
    return found
