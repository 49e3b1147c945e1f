"""Time-driven changes of requests and executions, and extensions of a deadline.

Sweeps expire overdue requests, close recall windows, send reminders and list the
executions that recovery has to look at. A missing answer is never an approval
(docs/invariants.md I6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from journal import clock, failpoints, log, outbox, restore_epochs, sweeps
from journal.errors import AlreadyDecided, Conflict, RequestExpired
from journal.operations import operation
from journal.writes import Guard
from policies.choices import ExecutionClass
from policies.models import Person
from policies.people import build_actor

from . import locks, permissions, transitions
from .alarms import standing
from .batches import membership
from .choices import ExecutionStatus, RequestStatus
from .decisions import tally
from .grants import approvers, sequence, uncertain
from .models import ApprovalRequest, Execution, Hold, RequestVersion
from .models.executions import NO_LOOK_UP
from .stops import incidents, scope

CHUNK = 500
# The only columns expiry needs: thousands of requests may be due in one second.
_EXPIRY_FIELDS = (
    "status", "version", "action_hash", "queue__id", "proposal__agent",
    "proposal__thread", "proposal__revision", "proposal__has_listener",
)  # fmt: skip
Sweep = Callable[[], list[str]]  # one chunk; returns the ids of the changed proposals
TIMER = log.Actor("system", "timer")


@operation(
    locks="deadlines (advisory, shared), requests (skip locked)",
    writes="ApprovalRequest, Observation",
    logs="request.expired",
    after="mail, webhook, wake-up",
)
def expire_chunk() -> list[str]:
    """Expire up to 500 overdue requests; return the ids of their proposals.

    A request under an open incident is not overdue, even when its stored deadline has
    not been moved yet. Raises DatabaseRestored while nobody has confirmed a restored
    database.
    """
    restore_epochs.check_not_restored()  # guard: expire-epoch
    locks.lock_deadlines(shared=True)
    # guard: expire-overdue
    overdue = ApprovalRequest.objects.filter(
        ~incidents.build_frozen_condition(),
        status=RequestStatus.PENDING,
        expires_at__lte=clock.ClockTimestamp(),
    )
    rows = list(locks.lock_due_requests(overdue).only(*_EXPIRY_FIELDS)[:CHUNK])
    now = clock.now()

    def expire(due: list[ApprovalRequest]) -> None:
        changes = {"settled_at": now}
        transitions.request.apply_many(
            due, "expire", actor=TIMER, now=now, changes=changes
        )
        uncertain.release_sums([row.proposal_id for row in due])

    expired = sweeps.apply_to_all(expire, rows)
    proposals = [row.proposal_id for row in expired]
    failpoints.point("expiry_uncommitted")
    return proposals


@operation(
    locks="requests (skip locked), alarms",
    writes="ApprovalRequest, Grant, Execution, Alarm",
    logs="request.authorized, grant.issued, execution.queued; alarm.raised",
    after="mail, nudge, webhook, wake-up",
)
def close_recall_windows() -> list[str]:
    """Authorise up to 500 requests whose recall window is over; return their proposals.

    The votes are counted again from the Decision rows. A request whose votes are
    missing keeps its status, and an alarm reports it once for each version
    (docs/invariants.md I18). Raises DatabaseRestored.
    """
    restore_epochs.check_not_restored()
    # guard: recall-over
    over = ApprovalRequest.objects.filter(
        status=RequestStatus.RECALLABLE, recall_until__lte=clock.ClockTimestamp()
    )
    rows = list(
        locks.lock_due_requests(standing.exclude_alarmed_requests(over))[:CHUNK]
    )
    now = clock.now()

    def authorize(due: list[ApprovalRequest]) -> None:
        lacking = approvers.without_votes(due)  # guard: window-votes
        voted = [row for row in due if row.pk not in lacking]
        membership.load_sealed_versions(voted)  # every sealed version in one query
        conditions = approvers.load_conditions(voted)
        tally.authorize_requests(voted, actor=TIMER, now=now, conditions=conditions)
        for row in due:
            if row.pk in lacking:
                standing.raise_for_missing_votes(row, now)

    closed = sweeps.apply_to_all(authorize, rows)
    for row in closed:
        failpoints.point("window_uncommitted", row.pk)
    return [row.proposal_id for row in closed]


@operation(locks="requests (skip locked)", writes="ApprovalRequest", after="mail")
def enqueue_reminders() -> int:
    """Enqueue one reminder for each request with less than a fifth of its time left,
    and one for each with less than half of it left that nobody holds. Handles up to 500
    requests of each kind and returns how many."""
    now = clock.now()
    near = _select_with_less_left(0.2, now).filter(reminded_at__isnull=True)

    def remind(due: list[ApprovalRequest]) -> None:
        _select_rows(due).update(reminded_at=now)
        for row in due:
            outbox.publish("request.due_soon", subject=row.pk)

    rows = sweeps.apply_to_all(remind, list(locks.lock_due_requests(near)[:CHUNK]))
    idle = _select_with_less_left(0.5, now).filter(
        half_time_at__isnull=True,
        reminded_at__isnull=True,  # the later reminder says more
        returned_at__isnull=True,  # it waits for its agent
    )
    held = Hold.objects.filter(request=OuterRef("pk"), until__gt=now)

    def call(due: list[ApprovalRequest]) -> None:
        _select_rows(due).update(half_time_at=now)
        for row in due:
            outbox.publish("request.half_time", subject=row.pk)

    waiting = list(locks.lock_due_requests(idle.filter(~Exists(held)))[:CHUNK])
    return len(rows) + len(sweeps.apply_to_all(call, waiting))


def _select_with_less_left(part: float, now: datetime) -> QuerySet[ApprovalRequest]:
    """Requests that wait and have less than this part of their time left; canaries too,
    which would be known by their silence."""
    whole = F("expires_at") - F("opened_at") - F("frozen_for")
    return ApprovalRequest.with_canaries.filter(
        ~incidents.build_frozen_condition(),
        status=RequestStatus.PENDING,
        expires_at__gt=now,
        expires_at__lte=now + whole * part,
    )


def _select_rows(rows: Iterable[ApprovalRequest]) -> QuerySet[ApprovalRequest]:
    return ApprovalRequest.with_canaries.filter(pk__in=[row.pk for row in rows])


@operation(
    locks="request", writes="ApprovalRequest", logs="request.extended", after="wake-up"
)
def extend_deadline(*, request_id: str, person: Person) -> ApprovalRequest:
    """Extend a deadline by the policy rule's time-out, up to the rule's maximum. Raises
    NotFound, NotPermitted, AlreadyEscalated, AlreadyDecided, RequestExpired, or
    Conflict when the maximum is reached already."""
    request = locks.lock_request_or_canary(request_id)
    now = clock.now()
    incidents.catch_up_deadline(request, now)
    if request.status != RequestStatus.PENDING:
        raise AlreadyDecided(
            "There is nothing to decide here any more. Nothing was changed."
        )
    if request.expires_at <= now:
        raise RequestExpired(
            "This has expired, so it cannot be extended. "
            f"{uncertain.describe_effect(request)}"
        )
    permissions.check_can_decide(person, request, request.sealed)
    before = request.expires_at
    later = compute_extended_deadline(request, request.sealed)
    if later <= before:
        raise Conflict("The policy allows no more time. Nothing was changed.")
    transitions.request.apply(
        request,
        "extend",
        actor=build_actor(person),
        now=now,
        changes={"expires_at": later, "reminded_at": None},
        guard=Guard(condition="stored.expires_at > clock_timestamp()"),
        data={"from": before.isoformat(), "to": later.isoformat()},
    )
    return request


def compute_extended_deadline(
    request: ApprovalRequest, version: RequestVersion
) -> datetime:
    """The deadline after an extension: the present one when the maximum is reached."""
    seconds = version.revision.evaluation["timeout"]
    return min(request.expires_at + timedelta(seconds=seconds), request.expires_at_most)


def list_overdue_executions(*, quiet: timedelta) -> list[str]:
    """Ids of up to 1,000 executions that are still queued `quiet` after they were due.
    Either their nudge was lost or their execution window is over. Recovery only
    enqueues them again; the claim decides whether they may run."""
    now = clock.now()
    queued = Execution.objects.filter(status=ExecutionStatus.QUEUED)
    closed = queued.filter(by_agent=True, grant__expires_at__lte=now)
    return _list_execution_ids(closed) + _list_execution_ids(
        _select_due_executions(now, quiet)
    )


def find_oldest_due_at(*, quiet: timedelta) -> datetime | None:
    """When the oldest overdue execution that the gate performs itself became due. None
    when there is none. Executions that have to wait are not counted."""
    due = _select_due_executions(clock.now(), quiet).order_by("due_at")
    return due.values_list("due_at", flat=True).first()


def _select_due_executions(now: datetime, quiet: timedelta) -> QuerySet[Execution]:
    queued = Execution.objects.filter(status=ExecutionStatus.QUEUED)
    due = queued.filter(due_at__lte=now - quiet, by_agent=False)
    # Executions that must wait would fill the front of the list on every sweep.
    due = due.exclude(sequence.build_waiting_condition(), grant__expires_at__gt=now)
    return due.exclude(scope.build_paused_condition(), grant__expires_at__gt=now)


def list_lapsed_executions() -> list[str]:
    """Ids of up to 500 claimed executions whose lease has lapsed. An agent may redeem
    its own keyed or queryable execution again within the execution window, so those are
    listed only after the window."""
    now = clock.now()
    lapsed = Execution.objects.filter(
        status=ExecutionStatus.CLAIMED, lease_until__lte=now
    )
    opaque = Q(grant__revision__tool__execution_class=ExecutionClass.OPAQUE)
    hopeless = opaque | Q(by_agent=False) | Q(grant__expires_at__lte=now)
    # Paused executions would fill the front of the list on every sweep. Those whose
    # outcome can be looked up are listed all the same.
    paused = (
        NO_LOOK_UP
        & ~opaque
        & scope.build_paused_condition()
        & Q(grant__expires_at__gt=now)
    )
    return _list_execution_ids(lapsed.filter(hopeless & ~paused))


def _list_execution_ids(rows: QuerySet[Execution]) -> list[str]:
    return list(rows.order_by("due_at").values_list("pk", flat=True)[:CHUNK])
