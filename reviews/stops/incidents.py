"""A declared incident: while people fight a fire, no request runs out of time because
nobody looked (gate.md section 5). What may be executed does not live longer by it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from journal import clock, log, outbox
from journal.errors import Conflict, NotFound, Reason
from policies.models import Person, Queue
from reviews import freezing, locks, permissions
from reviews.choices import OPEN
from reviews.models import ApprovalRequest, Incident
from reviews.permissions import Permission

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
    freezing.move(waiting, now)  # exactly, from wherever each was accounted for
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
        ~freezing.is_frozen(), pk__in=request_ids, frozen_through__isnull=False
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
    short = Q(frozen_through__isnull=True) | Q(frozen_through__lt=now + freezing.LEAST)
    held = _some(ApprovalRequest.objects.filter(freezing.is_frozen(), short))
    freezing.move(held, now + freezing.LEAD)
    over = _some(
        ApprovalRequest.objects.filter(
            ~freezing.is_frozen(), frozen_through__isnull=False
        )
    )
    freezing.move(over, now, ends=True)
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
