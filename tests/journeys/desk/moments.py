"""Time passes: stored instants are moved back, since every process reads the clock of
PostgreSQL. None of these columns is among those that never change."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import F

from journal import clock, notify
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Draft, Hold

BETWEEN = timedelta(seconds=1)


def passed(request: ApprovalRequest, **span: float) -> None:
    """As if so much time had gone by for this request: `passed(request, minutes=6)`."""
    gone = timedelta(**span)
    _mine(request).update(
        opened_at=F("opened_at") - gone,
        expires_at=F("expires_at") - gone,
        expires_at_most=F("expires_at_most") - gone,
        recall_until=F("recall_until") - gone,
    )
    Hold.objects.filter(pk=request.pk).update(
        taken_at=F("taken_at") - gone, until=F("until") - gone
    )
    Draft.objects.filter(request=request).update(saved_at=F("saved_at") - gone)
    tell(request)


def expires_in(request: ApprovalRequest, seconds: float) -> None:
    """The deadline is so near; below 0 it is so long over."""
    at = clock.now() + timedelta(seconds=seconds)
    _mine(request).update(expires_at=at)
    tell(request)


def window_over(request: ApprovalRequest) -> None:
    """Nobody can recall it any more; the next sweep lets it run."""
    _mine(request).update(recall_until=clock.now() - BETWEEN)
    tell(request)


def windows_over() -> None:
    """The same for everything that was approved."""
    for request in ApprovalRequest.objects.filter(status=RequestStatus.RECALLABLE):
        window_over(request)


def tell(request: ApprovalRequest) -> None:
    """Open pages look again, as they do when an operation changed something."""
    with transaction.atomic():
        notify.announce(request.proposal_id)


def _mine(request: ApprovalRequest):
    return ApprovalRequest.objects.filter(pk=request.pk)
