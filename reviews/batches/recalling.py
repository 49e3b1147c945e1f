"""Taking back every approval of a batch while its windows are open."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from journal import clock
from journal.errors import Running
from policies.models import Person
from reviews import locks, permissions
from reviews.choices import BatchStatus, RequestStatus
from reviews.decisions import recall
from reviews.models import ApprovalRequest

from . import records


@transaction.atomic(durable=True)
def recall_all(*, batch_id: str, person: Person) -> int:
    """Take back every approval of a batch whose window is still open; how many.

    Raises NotFound, NotYours, Running when no window is open any more.
    """
    batch = locks.batch(batch_id)
    permissions.admitted_role(person, batch.queue_id)
    items = batch.items.filter(left_at__isnull=True)
    requests = locks.approval_requests(items.values_list("request", flat=True))
    now = clock.now()
    held = [request for request in requests.values() if _recallable(request, now)]
    if batch.status != BatchStatus.DECIDED or not held:
        raise Running("Nothing of it can be recalled any more. Nothing was stopped.")
    for request in held:
        recall.take_back(request, person, now)
    ids = [request.pk for request in held]
    items.filter(request__in=ids).update(left_at=now)
    records.note(
        batch, "batch.recalled", records.actor_of(person), now, {"requests": ids}
    )
    return len(held)


def _recallable(request: ApprovalRequest, now: datetime) -> bool:
    until = request.recall_until
    held = request.status == RequestStatus.RECALLABLE
    return held and until is not None and until > now
