"""Declared incidents, during which the deadlines of open requests stand still.

People who handle an incident have no time to decide, so no request in its scope may
expire. Grants and their execution windows are not extended.

During an incident a sweep keeps the stored deadlines ahead of the clock; when it ends,
the excess is taken back. `frozen_through` says up to when a request's deadline has been
moved, so the time left is always `expires_at - frozen_through`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

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

from journal import clock, log, outbox, sweeps
from journal.errors import Conflict, NotFound, ReasonMissing
from journal.operations import operation
from policies.models import Person, Queue
from policies.people import build_actor
from reviews import locks, permissions
from reviews.choices import OPEN
from reviews.models import ApprovalRequest, Incident
from reviews.roles import Permission

# Frozen deadlines are kept this far ahead of the clock, and moved again when less than
# `LEAST_LEAD` is left. The sweep may fail for that long before people are affected.
DEADLINE_LEAD = timedelta(minutes=15)
LEAST_LEAD = timedelta(minutes=10)


def _select_covering_incidents(queue: int | OuterRef) -> QuerySet[Incident]:
    in_scope = Q(queue__isnull=True) | Q(queue=queue)
    return Incident.objects.filter(in_scope, ended_at__isnull=True)


def build_frozen_condition() -> Exists:
    """Condition on requests: an open incident stops the clock. It queries the
    incidents, so it also holds for rows that no sweep has moved yet."""
    return Exists(_select_covering_incidents(OuterRef("queue")))


def find_open_incident(queue_id: int) -> Incident | None:
    """The earliest declared open incident that covers this queue, or None."""
    return _select_covering_incidents(queue_id).order_by("at").first()


def move_deadlines(
    request_ids: Iterable[str], until: datetime, *, ends: bool = False
) -> int:
    """Move the deadlines of these requests by the frozen time up to `until`. The frozen
    time counts from `frozen_through`, or from the start of the freeze. With `ends` the
    clocks run again from `until`. Returns how many changed. The caller is in a
    transaction and holds the locks of the rows."""
    incidents = _select_covering_incidents(OuterRef("queue")).order_by("at")
    began = Subquery(incidents.values("at")[:1], output_field=DateTimeField())
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


def catch_up_deadline(
    request: ApprovalRequest, now: datetime, *, always: bool = False
) -> ApprovalRequest:
    """Move a request's deadline if an incident covers it and the sweep is late. By
    default only when the deadline has passed; `always` also when it has not, for a
    caller that sets a new deadline. Returns the request, refreshed. Without need it
    takes no query. The caller holds the request's lock."""
    ahead = request.frozen_through is not None and request.frozen_through > now
    if ahead or not (always or request.expires_at <= now):
        return request
    if find_open_incident(request.queue_id) is not None:
        move_deadlines([request.pk], now + DEADLINE_LEAD)
        request.refresh_from_db(
            fields=["expires_at", "expires_at_most", "frozen_for", "frozen_through"]
        )
    return request


def follow_queue(request: ApprovalRequest, queue_id: int, now: datetime) -> None:
    """Let a request that moves to another queue keep the time that it has left: its
    clock stands still from now on under an incident over that queue, and runs again
    without one. Caller holds the request's lock, caught up its deadline, and sets its
    queue."""
    frozen = find_open_incident(queue_id) is not None
    if frozen == (request.frozen_through is not None):
        return
    if frozen:
        ApprovalRequest.objects.filter(pk=request.pk).update(frozen_through=now)
    else:
        move_deadlines([request.pk], now, ends=True)
    request.refresh_from_db(
        fields=["expires_at", "expires_at_most", "frozen_for", "frozen_through"]
    )


def restart_deadlines(request_ids: Iterable[str], now: datetime) -> int:
    """Give these requests at least their whole original time again; return how many.
    The time counts from now, or from `frozen_through` if that is later. The caller is
    in a transaction and holds the locks of the rows."""
    # PostgreSQL's GREATEST ignores NULL.
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


def compute_clock_start(request: ApprovalRequest, now: datetime) -> datetime:
    """When time given now starts to count: now, or `frozen_through` if later."""
    return max(now, request.frozen_through or now)


def compute_renewed_deadline(
    request: ApprovalRequest, seconds: int, now: datetime
) -> datetime:
    """`seconds` from now on, never earlier than before, never past the maximum."""
    again = compute_clock_start(request, now) + timedelta(seconds=seconds)
    return min(max(request.expires_at, again), request.expires_at_most)


def compute_time_left(request: ApprovalRequest, now: datetime) -> timedelta:
    """The time left to answer; constant while the clock stands still."""
    return max(request.expires_at - (request.frozen_through or now), timedelta(0))


def has_time_left(request: ApprovalRequest, now: datetime) -> bool:
    """Whether there is time left to answer, even when the sweep is late."""
    return request.frozen_through is not None or request.expires_at > now


def compute_time_given(request: ApprovalRequest) -> timedelta:
    """The total time given to answer, without the time the clock stood still."""
    return request.expires_at - request.opened_at - request.frozen_for


CHUNK = 500
TIMER = log.Actor("system", "timer")


@operation(
    locks="deadlines (advisory)",
    writes="Incident",
    logs="incident.declared",
    after="a task that moves the deadlines, mail",
)
def declare_incident(
    *, person: Person, reason: str, queue: Queue | None = None
) -> Incident:
    """Declare an incident over one queue, or over all queues without one. A task then
    moves the stored deadlines; expiry also checks for open incidents, so nothing
    expires before that. Raises NotPermitted, ReasonMissing when none is given, or
    Conflict when this scope has an open incident."""
    permissions.check_permission(person, Permission.DECLARE)
    if not reason.strip():
        raise ReasonMissing("Describe what happened. No deadline was paused.")
    locks.lock_deadlines()
    open_incidents = Incident.objects.filter(queue=queue, ended_at__isnull=True)
    if open_incidents.exists():
        where = "this queue" if queue else "all queues"
        raise Conflict(f"An incident in {where} is open already. Nothing was changed.")
    row = Incident.objects.create(
        queue=queue, reason=reason, declared_by=person.public_id, at=clock.now()
    )
    _record_incident_event(
        "incident.declared", row, person, row.at, private={"reason": reason}
    )
    outbox.publish("incident.declared", subject=str(row.pk))
    return row


@operation(
    locks="deadlines (advisory), requests by id",
    writes="Incident, ApprovalRequest",
    logs="incident.ended",
    after="mail",
)
def end_incident(*, incident_id: int, person: Person) -> Incident:
    """End an incident: deadlines run again, with the time they had left. A request
    opened during the incident has its whole time. Requests that another open incident
    covers stay frozen. Raises NotFound, NotPermitted, or Conflict when it has ended
    already."""
    permissions.check_permission(person, Permission.DECLARE)
    locks.lock_deadlines()
    row = Incident.objects.filter(pk=incident_id).select_related("queue").first()
    if row is None:
        raise NotFound
    in_scope = Q(queue=row.queue_id) if row.queue_id else Q()
    requests = ApprovalRequest.objects.filter(in_scope, status__in=OPEN)
    locked = locks.lock_requests_in_order(requests)
    waiting = list(locked.values_list("pk", flat=True))
    now = clock.now()
    move_deadlines(waiting, now)  # exact: takes back what was moved in advance
    ended = Incident.objects.filter(pk=row.pk, ended_at__isnull=True)
    if ended.update(ended_at=now, ended_by=person.public_id) != 1:
        raise Conflict("This incident has already ended. Nothing was changed.")
    row.refresh_from_db()
    # The clocks run again, except under another incident.
    thawed = ApprovalRequest.objects.filter(
        ~build_frozen_condition(), pk__in=waiting, frozen_through__isnull=False
    ).update(frozen_through=None)
    _record_incident_event("incident.ended", row, person, now, requests=thawed)
    return row


@operation(
    locks="deadlines (advisory), requests (skip locked)",
    writes="ApprovalRequest",
    logs="incident.held",
)
def advance_frozen_deadlines() -> list[str]:
    """Move up to 500 frozen deadlines that are not far enough ahead of the clock. Also
    restarts up to 500 clocks that no incident stops any more. Returns the ids of the
    requests whose deadlines moved."""
    if not _has_work():
        return []
    locks.lock_deadlines()
    now = clock.now()
    short = Q(frozen_through__isnull=True) | Q(frozen_through__lt=now + LEAST_LEAD)

    def advance(due: list[ApprovalRequest]) -> None:
        move_deadlines([row.pk for row in due], now + DEADLINE_LEAD)

    def restart(due: list[ApprovalRequest]) -> None:
        move_deadlines([row.pk for row in due], now, ends=True)

    frozen = ApprovalRequest.objects.filter(build_frozen_condition(), short)
    held = [row.pk for row in sweeps.apply_to_all(advance, _lock_due_rows(frozen))]
    free = ApprovalRequest.objects.filter(
        ~build_frozen_condition(), frozen_through__isnull=False
    )
    over = sweeps.apply_to_all(restart, _lock_due_rows(free))
    if held or over:
        data = {"requests": len(held), "run_again": len(over)}
        log.append("incident.held", actor=TIMER, at=now, data=data)
    return held


def _has_work() -> bool:
    """Whether the sweep has anything to do; usually not, and then it takes no lock."""
    running = Incident.objects.filter(ended_at__isnull=True)
    frozen = ApprovalRequest.objects.filter(
        status__in=OPEN, frozen_through__isnull=False
    )
    return running.exists() or frozen.exists()


def _lock_due_rows(rows: QuerySet[ApprovalRequest]) -> list[ApprovalRequest]:
    due = locks.lock_due_requests(rows.filter(status__in=OPEN))
    return list(due[:CHUNK])


def _record_incident_event(
    kind: str, row: Incident, person: Person, now: datetime, **more: Any
) -> None:
    private = more.pop("private", None)
    queue = row.queue.name if row.queue else ""
    log.append(
        kind,
        actor=build_actor(person),
        at=now,
        data={"incident": row.pk, "queue": queue, **more},
        private=private,
    )
    facts = {"kind": kind.partition(".")[2]}
    outbox.publish_many(
        "incident.told",
        [
            (str(row.pk), {"person": supervisor.public_id, **facts})
            for supervisor in permissions.list_supervisors(row.queue_id)
        ],
    )
