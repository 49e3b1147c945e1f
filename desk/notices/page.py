"""The messages about one request: to whom, on which channel, and what became of each
attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from journal.errors import NotFound
from notifications.channels import registry
from notifications.events import NOTICE_TITLES
from policies.models import Person
from reviews import permissions
from reviews.models import ApprovalRequest, Notice
from reviews.permissions import Permission

from ..components import visibility

MAX_LINES = 200
_DROP_WORDS = {
    "settled": "not sent: it was settled or changed before",
    "not_theirs": "not sent: it no longer concerned them",
    "taken": "not sent: somebody had claimed the request",
    "undeliverable": "given up",
}


@dataclass(frozen=True, slots=True)
class NoticeLine:
    """One message."""

    at: datetime
    reader: str  # a person, or the place
    channel: str
    what: str
    attempts: int
    sent_at: datetime | None
    next_at: datetime | None  # of an attempt that is still to come
    dropped: str
    error: str
    message_id: str


@dataclass(frozen=True, slots=True)
class NoticesPage:
    """The newest messages about a request, the newest first."""

    request: ApprovalRequest
    lines: Sequence[NoticeLine]
    more: bool


def load_notices_page(person: Person, pk: str) -> NoticesPage:
    """Load the messages about a request. Raises NotFound for a request that this person
    may not see, and for people without the permission."""
    request = visibility.find_visible_request(person, pk)
    if request is None or person.public_id in request.proposal.barred:
        raise NotFound
    if not permissions.has_permission(person, Permission.SEE_DELIVERIES):
        raise NotFound
    notices = Notice.objects.filter(request=request).select_related("person")
    rows = list(notices.order_by("-pk")[: MAX_LINES + 1])
    lines = [_build_line(row) for row in rows[:MAX_LINES]]
    return NoticesPage(request, lines, len(rows) > MAX_LINES)


def _build_line(row: Notice) -> NoticeLine:
    known = registry.load_channels().get(row.channel)
    waits = row.sent_at is None and not row.let_go
    return NoticeLine(
        at=row.at,
        reader=str(row.person) if row.person else row.target or "the default place",
        channel=known.title if known else row.channel,
        what=NOTICE_TITLES.get(row.kind, row.kind),
        attempts=row.attempts,
        sent_at=row.sent_at,
        next_at=row.due_at if waits else None,
        dropped=_DROP_WORDS.get(row.let_go, row.let_go),
        error=row.error,
        message_id=row.message_id,
    )
