"""Operations on a decided batch: resume it after a failure, retry failed executions,
and recall approvals while their recall windows are open."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from journal import clock, outbox
from journal.errors import AlreadyRunning, Conflict, NotFound
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions
from reviews.choices import BatchStatus, ExecutionStatus, RequestStatus
from reviews.decisions import recall
from reviews.executions import settle
from reviews.models import ApprovalRequest, Batch, Execution

from . import membership


@operation(writes="Batch", logs="batch.resumed", after="nudge")
def run_rest(*, batch_id: str, person: Person) -> None:
    """Resume a batch halted by a failure: its queued executions may run. Raises
    NotFound, NotPermitted, and Conflict when the batch is not halted."""
    batch = _load_decided_batch(batch_id, person)
    _resume_batch(batch, person, clock.now())
    first = _select_queued(batch).first()
    if first is not None:
        outbox.publish("execution.queued", subject=first.pk)


@operation(
    locks="grants and executions by id, sums (advisory)",
    writes="Execution, Observation, Batch",
    logs="execution.retried, batch.resumed",
    after="nudge, webhook, wake-up",
)
def retry_failed(*, batch_id: str, person: Person) -> int:
    """Queue the batch's FAILED executions again, with the same grants, bytes and keys,
    and resume the batch if it is halted. Returns how many. Raises NotFound,
    NotPermitted, GrantExpired, Conflict when nothing has failed."""
    batch = _load_decided_batch(batch_id, person)
    failed = batch.executions.filter(status=ExecutionStatus.FAILED)
    rows = [
        locks.lock_execution(pk)
        for pk in failed.order_by("pk").values_list("pk", flat=True)
    ]
    now = clock.now()
    again = [row for row in rows if row.status == ExecutionStatus.FAILED]
    if not again:
        raise Conflict("No item of this batch has failed. Nothing was changed.")
    settle.requeue_failed(again, person, now)
    if batch.halted_at is not None:
        _resume_batch(batch, person, now)
    return len(again)


def _load_decided_batch(batch_id: str, person: Person) -> Batch:
    batch = Batch.objects.filter(pk=batch_id).first()
    if batch is None:
        raise NotFound
    permissions.check_admitted_to_queue(person, batch.queue_id)
    if batch.status != BatchStatus.DECIDED:
        raise Conflict("This batch has not been decided. Nothing was changed.")
    return batch


def _resume_batch(batch: Batch, person: Person, now: datetime) -> None:
    halted = Batch.objects.filter(pk=batch.pk, halted_at__isnull=False)
    if halted.update(halted_at=None) != 1:
        raise Conflict("This batch is not stopped at a failure. Nothing was changed.")
    membership.log_batch_event(batch, "batch.resumed", build_actor(person), now, {})


def _select_queued(batch: Batch) -> Any:
    rows = Execution.objects.filter(batch=batch, status=ExecutionStatus.QUEUED)
    return rows.order_by("batch_position")


@operation(
    locks="batch, requests by id",
    writes="ApprovalRequest, RequestVersion, BatchItem",
    logs="request.recalled, batch.recalled",
    after="wake-up",
)
def recall_batch(*, batch_id: str, person: Person) -> int:
    """Recall every approval of a batch whose recall window is still open. Returns how
    many. Raises NotFound, NotPermitted, AlreadyRunning when no window is open any
    more."""
    batch = locks.lock_batch(batch_id)
    permissions.check_admitted_to_queue(person, batch.queue_id)
    items = batch.items.filter(left_at__isnull=True)
    requests = locks.lock_requests(items.values_list("request", flat=True))
    now = clock.now()
    held = [request for request in requests.values() if _is_recallable(request, now)]
    if batch.status != BatchStatus.DECIDED or not held:
        raise AlreadyRunning(
            "No approval in this batch can be undone any more. Nothing was stopped."
        )
    for request in held:
        recall.apply_recall(request, person, now)
    ids = [request.pk for request in held]
    items.filter(request__in=ids).update(left_at=now)
    membership.log_batch_event(
        batch,
        "batch.recalled",
        build_actor(person),
        now,
        {"requests": ids},
    )
    return len(held)


def _is_recallable(request: ApprovalRequest, now: datetime) -> bool:
    until = request.recall_until
    held = request.status == RequestStatus.RECALLABLE
    return held and until is not None and until > now
