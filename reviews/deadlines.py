"""What time does by itself: expiry, the end of a recall window, reminders, lapsed
leases; and more time, where a person asks for it. Silence is never a yes [I6]."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from journal import clock, failpoints, log, outbox, restore_epochs
from journal.errors import Conflict, Decided, Expired
from policies.choices import ExecutionClass
from policies.models import Person

from . import locks, permissions, transitions
from .alarms import standing
from .batches import membership
from .choices import ExecutionStatus, RequestStatus
from .decisions import tally
from .grants import approvers, sequence, uncertain
from .models import ApprovalRequest, Execution, RequestVersion
from .models.executions import BLIND
from .stops import incidents, scope

CHUNK = 500
# All that is said of a request that expires: thousands may be due in one second.
_SAID = (
    "status", "version", "action_hash", "queue__id", "proposal__agent",
    "proposal__thread", "proposal__revision", "proposal__heard",
)  # fmt: skip
Sweep = Callable[[], list[str]]  # one chunk; the ids of the proposals it moved
TIMER = log.Actor("system", "timer")


@transaction.atomic(durable=True)
def expire_chunk() -> list[str]:
    """End up to 500 overdue requests as EXPIRED; the ids of their proposals. Under an
    open incident nothing is, however late its deadlines are moved on; nor while a
    restored database is not looked at (Restored)."""
    restore_epochs.check()  # guard: expire-epoch
    locks.deadlines(shared=True)
    # guard: expire-overdue
    overdue = ApprovalRequest.objects.filter(
        ~incidents.is_frozen(),
        status=RequestStatus.PENDING,
        expires_at__lte=clock.ClockTimestamp(),
    )
    rows = list(locks.requests_due(overdue).only(*_SAID)[:CHUNK])
    now = clock.now()
    transitions.request.apply_many(
        rows, "expire", actor=TIMER, now=now, changes={"settled_at": now}
    )
    proposals = [row.proposal_id for row in rows]
    uncertain.release(proposals)
    failpoints.point("expiry_uncommitted")
    return proposals


@transaction.atomic(durable=True)
def close_recall_windows() -> list[str]:
    """Authorise what nobody recalled; the ids of the proposals. The votes are counted
    again from their rows: a request without them stays where it is, and an alarm says
    so once for each of its versions [I18]."""
    restore_epochs.check()
    # guard: recall-over
    over = ApprovalRequest.objects.filter(
        status=RequestStatus.RECALLABLE, recall_until__lte=clock.ClockTimestamp()
    )
    rows = list(locks.requests_due(standing.unsaid_without_votes(over))[:CHUNK])
    now = clock.now()
    lacking = approvers.without_votes(rows)  # guard: window-votes
    voted = [row for row in rows if row.pk not in lacking]
    membership.sealed(voted)  # what each asks, in one query
    tally.authorize(voted, actor=TIMER, now=now)
    for row in rows:
        failpoints.point("window_uncommitted", row.pk)
    for row in rows:
        if row.pk in lacking:
            standing.without_votes(row, now)
    return [row.proposal_id for row in rows]


@transaction.atomic(durable=True)
def remind() -> int:
    """Say once that a deadline is near: when a fifth of the time is left."""
    now = clock.now()
    waited = (F("expires_at") - F("opened_at") - F("frozen_for")) * 0.2
    near = ApprovalRequest.objects.filter(
        ~incidents.is_frozen(),
        status=RequestStatus.PENDING,
        reminded_at__isnull=True,
        expires_at__gt=now,
        expires_at__lte=now + waited,
    )
    rows = list(locks.requests_due(near)[:CHUNK])
    ApprovalRequest.objects.filter(pk__in=[row.pk for row in rows]).update(
        reminded_at=now
    )
    for row in rows:
        outbox.publish("request.due_soon", subject=row.pk)
    return len(rows)


@transaction.atomic(durable=True)
def extend(*, request_id: str, person: Person) -> ApprovalRequest:
    """Once more the rule's own time to answer, never past the rule's most.

    Raises NotFound, NotYours, Escalated, Decided, Expired, Conflict at the most.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    incidents.catch_up(request, now)
    if request.status != RequestStatus.PENDING:
        raise Decided("There is nothing to decide here any more. Nothing was changed.")
    if request.expires_at <= now:
        raise Expired(
            f"This has expired, so it cannot be extended. {uncertain.said_of(request)}"
        )
    permissions.check_can_decide(person, request, request.sealed)
    later, before = extended(request, request.sealed), request.expires_at
    if later <= before:
        raise Conflict("The policy allows no more time. Nothing was changed.")
    transitions.request.apply(
        request,
        "extend",
        actor=log.Actor("person", person.public_id),
        now=now,
        changes={"expires_at": later, "reminded_at": None},
        guard=Q(expires_at__gt=clock.ClockTimestamp()),
        data={"from": before.isoformat(), "to": later.isoformat()},
    )
    return request


def extended(request: ApprovalRequest, version: RequestVersion) -> datetime:
    """Until when an extension lets it wait: as now where the policy's limit is hard."""
    seconds = version.revision.evaluation["timeout"]
    return min(request.expires_at + timedelta(seconds=seconds), request.expires_at_most)


def queued_executions(*, quiet: timedelta) -> list[str]:
    """Executions still queued `quiet` after they were due: their nudge was lost, or
    their window is over. Recovery only names them; the claim decides what may be."""
    now = clock.now()
    queued = Execution.objects.filter(status=ExecutionStatus.QUEUED)
    closed = queued.filter(by_agent=True, grant__expires_at__lte=now)
    return _ids(closed) + _ids(_due(now, quiet))


def oldest_due(*, quiet: timedelta) -> datetime | None:
    """Since when the oldest of them is due that the gate performs itself; None when
    there is none."""
    due = _due(clock.now(), quiet).order_by("due_at")
    return due.values_list("due_at", flat=True).first()


def _due(now: datetime, quiet: timedelta) -> QuerySet[Execution]:
    queued = Execution.objects.filter(status=ExecutionStatus.QUEUED)
    due = queued.filter(due_at__lte=now - quiet, by_agent=False)
    # What has to wait would stand before all others, however often it is named.
    due = due.exclude(sequence.waiting(), grant__expires_at__gt=now)
    return due.exclude(scope.paused(), grant__expires_at__gt=now)


def lapsed_executions() -> list[str]:
    """Claims whose lease is over. An agent may redeem a keyed or queryable one of its
    own again while the window lasts: such are named only after it."""
    now = clock.now()
    lapsed = Execution.objects.filter(
        status=ExecutionStatus.CLAIMED, lease_until__lte=now
    )
    opaque = Q(grant__revision__tool__execution_class=ExecutionClass.OPAQUE)
    hopeless = opaque | Q(by_agent=False) | Q(grant__expires_at__lte=now)
    # What a pause keeps would stand before all others; but what can be looked up is.
    kept = BLIND & ~opaque & scope.paused() & Q(grant__expires_at__gt=now)
    return _ids(lapsed.filter(hopeless & ~kept))


def _ids(rows: QuerySet[Execution]) -> list[str]:
    return list(rows.order_by("due_at").values_list("pk", flat=True)[:CHUNK])
