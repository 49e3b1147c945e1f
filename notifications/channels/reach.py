"""Whether the messages about a request reached anybody, for its page and its row in the
queue."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Exists, OuterRef, Subquery

from reviews.models import ApprovalRequest, Notice

UNREACHED = "No message was sent"
UNREAD = "People were notified; nobody claimed it"


def build_refusal_subquery() -> Subquery:
    """For versions of requests: why the messages about the request failed; NULL as soon
    as one was sent, and while none has failed."""
    about = Notice.objects.filter(request=OuterRef("request"))
    failed = about.filter(sent_at__isnull=True).exclude(error="")
    unsent = failed.filter(~Exists(about.filter(sent_at__isnull=False)))
    return Subquery(unsent.order_by("-attempts", "pk").values("error")[:1])


def build_sent_condition() -> Exists:
    """For versions of requests: whether a message about the request was sent."""
    about = Notice.objects.filter(request=OuterRef("request"))
    return Exists(about.filter(sent_at__isnull=False))


def is_unread(request: ApprovalRequest, now: datetime) -> bool:
    """Whether half of the request's time is over and nobody has claimed it. A sent
    message that nobody acts on reaches nobody."""
    half = request.opened_at + (request.expires_at - request.opened_at) / 2
    return now >= half and getattr(request, "hold", None) is None
