"""A declared incident makes clocks stand still: the stored deadline of every open
request in its scope is kept ahead, and at the end what is too much is taken back.

A row's `frozen_through` is how far that is accounted for. Until then its time is used
up by nobody: what is left is `expires_at - frozen_through`, whenever one looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import (
    DateTimeField,
    DurationField,
    Exists,
    ExpressionWrapper,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import Coalesce, Greatest

from .models import ApprovalRequest, Incident

# Deadlines are kept this far ahead of the clock, and moved on when less than `LEAST`
# is left of that: for so long the sweep may stand still, and people still decide.
LEAD = timedelta(minutes=15)
LEAST = timedelta(minutes=10)


def _over_row() -> QuerySet[Incident]:
    """The open incidents over the request of the outer query."""
    mine = Q(queue__isnull=True) | Q(queue=OuterRef("queue"))
    return Incident.objects.filter(mine, ended_at__isnull=True)


def is_frozen() -> Exists:
    """The condition of a request whose clock an open incident stops: asked of the
    incidents themselves, so that no row has to be in time for it."""
    return Exists(_over_row())


def over(queue_id: int) -> Incident | None:
    """The open incident over this queue that was declared first."""
    mine = Q(queue__isnull=True) | Q(queue=queue_id)
    found = Incident.objects.filter(mine, ended_at__isnull=True)
    return found.order_by("at").first()


def move(request_ids: Iterable[str], until: datetime, *, ends: bool = False) -> int:
    """Account for these requests up to a moment, each from where it was accounted for
    or from when its clock first stood still; with `ends` it runs again from there.
    How many. Caller holds a transaction and the locks of the rows."""
    began = Subquery(
        _over_row().order_by("at").values("at")[:1], output_field=DateTimeField()
    )
    since = Coalesce("frozen_through", Greatest("opened_at", began))
    stood = ExpressionWrapper(
        Value(until, output_field=DateTimeField()) - since, DurationField()
    )
    return ApprovalRequest.objects.filter(pk__in=list(request_ids)).update(
        expires_at=F("expires_at") + stood,
        expires_at_most=F("expires_at_most") + stood,
        frozen_for=F("frozen_for") + stood,
        frozen_through=None if ends else until,
    )


def catch_up(
    request: ApprovalRequest, now: datetime, *, always: bool = False
) -> ApprovalRequest:
    """Under an incident a deadline that seems to be over is not: it was not moved on
    in time. `always` also accounts for one that is not over, before its deadline is
    set anew. One query, and none for what is in time. Caller holds the row's lock."""
    ahead = request.frozen_through is not None and request.frozen_through > now
    if ahead or not (always or request.expires_at <= now):
        return request
    if over(request.queue_id) is not None:
        move([request.pk], now + LEAD)
        request.refresh_from_db(
            fields=["expires_at", "expires_at_most", "frozen_for", "frozen_through"]
        )
    return request


def begin_anew(request_ids: Iterable[str], now: datetime) -> int:
    """Leave each of these at least the time that it was given in all, from where its
    clock stands: what passed before that is nobody's. How many. Caller holds a
    transaction and the locks of the rows."""
    # PostgreSQL's GREATEST leaves NULL out.
    stands = Greatest(Value(now, output_field=DateTimeField()), "frozen_through")
    given = ExpressionWrapper(
        stands + (F("expires_at") - F("opened_at") - F("frozen_for")), DateTimeField()
    )
    until = Greatest("expires_at", given)
    more = ExpressionWrapper(until - F("expires_at"), DurationField())
    return ApprovalRequest.objects.filter(pk__in=list(request_ids)).update(
        expires_at=until,
        expires_at_most=Greatest("expires_at_most", given),
        frozen_for=F("frozen_for") + more,
        reminded_at=None,
    )


def running_from(request: ApprovalRequest, now: datetime) -> datetime:
    """From when time that is given now counts: where the clock stands, not earlier."""
    return max(now, request.frozen_through or now)


def left(request: ApprovalRequest, now: datetime) -> timedelta:
    """What is left to answer in; while the clock stands still always the same."""
    return max(request.expires_at - (request.frozen_through or now), timedelta(0))


def is_open(request: ApprovalRequest, now: datetime) -> bool:
    """Whether its time is not over, also where the sweep is late."""
    return request.frozen_through is not None or request.expires_at > now


def waited(request: ApprovalRequest) -> timedelta:
    """All the time it was ever given, without that in which its clock stood still."""
    return request.expires_at - request.opened_at - request.frozen_for
