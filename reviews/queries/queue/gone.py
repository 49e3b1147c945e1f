"""What was decided elsewhere since a list was made, in words for its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from policies.models import Person
from reviews import permissions
from reviews.choices import SETTLED, RequestStatus
from reviews.desk.components.log_sentences import HIDDEN_NAME
from reviews.models import ApprovalRequest, Decision

MOST = 60  # rows; a page that old is better loaded anew
WORDS = {
    RequestStatus.RECALLABLE: "Approved",
    RequestStatus.AUTHORIZED: "Approved",
    RequestStatus.REJECTED: "Rejected",
    RequestStatus.EXPIRED: "Expired",
    RequestStatus.WITHDRAWN: "Withdrawn",
    RequestStatus.SUPERSEDED: "Replaced",
}
BY_PEOPLE = {RequestStatus.AUTHORIZED, RequestStatus.REJECTED}


@dataclass(frozen=True, slots=True)
class Gone:
    """A request that no longer waits: `Approved by Tomás`."""

    id: str
    said: str


def since(person: Person, moment: datetime) -> list[Gone]:
    """Of this person's queues, newest first, in two queries. Who decided is named only
    of what is settled, and never to those whose own run it was."""
    found = ApprovalRequest.objects.filter(queue__in=permissions.queues_of(person))
    settled = found.filter(settled_at__gt=moment, status__in=SETTLED)
    held = found.filter(status=RequestStatus.RECALLABLE)
    rows = [*settled.order_by("-settled_at")[:MOST], *held[:MOST]][:MOST]
    names = _names(row.pk for row in rows if row.status in BY_PEOPLE)
    return [Gone(row.pk, _said(row, names, person)) for row in rows]


def _names(ids: Iterable[str]) -> dict[str, str]:
    """Who said the last word, by request."""
    votes = Decision.objects.filter(request__in=list(ids)).select_related("reviewer")
    return {vote.request_id: str(vote.reviewer) for vote in votes.order_by("at")}


def _said(row: ApprovalRequest, names: dict[str, str], person: Person) -> str:
    word = WORDS[RequestStatus(row.status)]
    if row.pk not in names:
        return word
    own = person.public_id in row.barred
    return f"{word} by {HIDDEN_NAME if own else names[row.pk]}"
