"""The messages about one request: to whom, on which channel, and what became of each
attempt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from journal.errors import NotFound
from notifications.channels import registry
from notifications.events import NOTICE_TITLES
from policies.models import Person
from reviews import permissions
from reviews.models import ApprovalRequest, Notice
from reviews.roles import Permission

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
    """One message, to a person or a place."""

    notice: Notice
    reader: Person | str
    channel: str
    what: str
    dropped: str


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
    return NoticeLine(
        notice=row,
        reader=row.person or row.target or "the default place",
        channel=known.title if known else row.channel,
        what=NOTICE_TITLES.get(row.kind, row.kind),
        dropped=_DROP_WORDS.get(row.let_go, row.let_go),
    )
