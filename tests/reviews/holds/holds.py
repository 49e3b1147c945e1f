"""What became of a hold, and its end moved into the past."""

from __future__ import annotations

from datetime import timedelta

from journal import clock
from journal.models import LogRecord, OutboxMessage
from policies.models import Person
from reviews.models import ApprovalRequest, Hold


def lapse(request: ApprovalRequest) -> None:
    """Move the end of a hold into the past; the clock is never moved."""
    past = clock.now() - timedelta(seconds=1)
    Hold.objects.filter(pk=request.pk).update(until=past)


def kinds(request: ApprovalRequest) -> list[str]:
    found = LogRecord.objects.filter(request=request.pk, kind__startswith="hold.")
    return list(found.order_by("pk").values_list("kind", flat=True))


def freed_for(request: ApprovalRequest) -> list[str]:
    found = OutboxMessage.objects.filter(topic="request.freed", subject=request.pk)
    return [str(message.facts["person"]) for message in found]


def held_by(request: ApprovalRequest) -> Person | None:
    hold = Hold.objects.filter(pk=request.pk).first()
    return hold.holder if hold else None
