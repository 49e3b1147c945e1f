"""A declared incident: while people fight a fire, no request runs out of time because
nobody looked (gate.md section 5). What may be executed does not live longer by it.

A declared incident makes clocks stand still: the stored deadline of every open
request in its scope is kept ahead, and at the end what is too much is taken back.

A row's `frozen_through` is how far that is accounted for. Until then its time is used
up by nobody: what is left is `expires_at - frozen_through`, whenever one looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
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

from journal import clock, log, outbox
from journal.errors import Conflict, NotFound, Reason
from policies.models import Person, Queue
from reviews import locks, permissions
from reviews.choices import OPEN
from reviews.models import ApprovalRequest, Incident
from reviews.permissions import Permission

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


CHUNK = 500
TIMER = log.Actor("system", "timer")


@transaction.atomic(durable=True)
def declare(*, person: Person, reason: str, queue: Queue | None = None) -> Incident:
    """From now on no deadline of this queue runs down; of every queue without one.

    Raises NotYours, Reason for none, or Conflict when one is open already. A task then
    moves the stored deadlines on; until it has, expiry asks for open incidents.
    """
    permissions.check(person, Permission.DECLARE)
    if not reason.strip():
        raise Reason("Say what happened. Nothing was frozen.")
    locks.deadlines()
    found = Incident.objects.filter(queue=queue, ended_at__isnull=True)
    if found.exists():
        raise Conflict("Deadlines are frozen already. Nothing was changed.")
    row = Incident.objects.create(
        queue=queue, reason=reason, declared_by=person.public_id, at=clock.now()
    )
    _tell("incident.declared", row, person, row.at, private={"reason": reason})
    outbox.publish("incident.declared", subject=str(row.pk))
    return row


@transaction.atomic(durable=True)
def end(*, incident_id: int, person: Person) -> Incident:
    """Deadlines run again: each request has the time that it had left, and one opened
    meanwhile all of its own. What another incident is over stays frozen.

    Raises NotFound, NotYours, Conflict when it is over already.
    """
    permissions.check(person, Permission.DECLARE)
    locks.deadlines()
    row = Incident.objects.filter(pk=incident_id).select_related("queue").first()
    if row is None:
        raise NotFound
    waiting = _waiting(row)
    now = clock.now()
    move(waiting, now)  # exactly, from wherever each was accounted for
    ended = Incident.objects.filter(pk=row.pk, ended_at__isnull=True)
    if ended.update(ended_at=now, ended_by=person.public_id) != 1:
        raise Conflict("It is over already. Nothing was changed.")
    row.refresh_from_db()
    thawed = _run_again(waiting)
    _tell("incident.ended", row, person, now, requests=thawed)
    return row


def _waiting(row: Incident) -> list[str]:
    """Ids of the open requests in its scope, locked in the order of their pk."""
    mine = Q(queue=row.queue_id) if row.queue_id else Q()
    found = ApprovalRequest.objects.filter(mine, status__in=OPEN)
    return list(locks.requests_in_order(found).values_list("pk", flat=True))


def _run_again(request_ids: list[str]) -> int:
    """All of these but what another incident is still over."""
    found = ApprovalRequest.objects.filter(
        ~is_frozen(), pk__in=request_ids, frozen_through__isnull=False
    )
    return found.update(frozen_through=None)


@transaction.atomic(durable=True)
def hold_deadlines() -> list[str]:
    """Move up to 500 frozen deadlines on that are not far enough ahead, and let those
    run again that no incident is over any more; the ids of the requests moved."""
    if not _anything():
        return []
    locks.deadlines()
    now = clock.now()
    short = Q(frozen_through__isnull=True) | Q(frozen_through__lt=now + LEAST)
    held = _some(ApprovalRequest.objects.filter(is_frozen(), short))
    move(held, now + LEAD)
    over = _some(
        ApprovalRequest.objects.filter(~is_frozen(), frozen_through__isnull=False)
    )
    move(over, now, ends=True)
    if held or over:
        data = {"requests": len(held), "run_again": len(over)}
        log.append("incident.held", actor=TIMER, at=now, data=data)
    return held


def _anything() -> bool:
    """Whether any clock stands still or should run again: mostly none, and then the
    sweep takes no lock."""
    running = Incident.objects.filter(ended_at__isnull=True)
    frozen = ApprovalRequest.objects.filter(
        status__in=OPEN, frozen_through__isnull=False
    )
    return running.exists() or frozen.exists()


def _some(rows: QuerySet[ApprovalRequest]) -> list[str]:
    due = locks.requests_due(rows.filter(status__in=OPEN))
    return list(due.values_list("pk", flat=True)[:CHUNK])


def _tell(kind: str, row: Incident, person: Person, now: datetime, **more: Any) -> None:
    """The log, and one letter for each supervisor in its scope."""
    private = more.pop("private", None)
    queue = row.queue.name if row.queue else ""
    log.append(
        kind,
        actor=log.Actor("person", person.public_id),
        at=now,
        data={"incident": row.pk, "queue": queue, **more},
        private=private,
    )
    said = {"kind": kind.partition(".")[2]}
    outbox.publish_many(
        "incident.told",
        [
            (str(row.pk), {"person": one.public_id, **said})
            for one in permissions.supervisors(row.queue_id)
        ],
    )
