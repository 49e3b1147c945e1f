"""Who left a batch by themselves, and what becomes of what is left."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from journal import clock
from policies import tools
from policies.choices import Tier
from reviews import locks, transitions
from reviews.batches import membership
from reviews.choices import BatchStatus, RequestStatus
from reviews.models import Batch, BatchItem

from .loose import CHUNK, LEAST
from .records import FORMER, note

TAKING = (BatchStatus.FORMING, BatchStatus.OPEN)


def tidy_all() -> int:
    """See who left, close what is complete and dissolve what is too small; how many
    batches changed."""
    waiting = Batch.objects.filter(status__in=TAKING).values_list("pk", flat=True)
    free_recalled()
    return sum(tidy(batch_id=pk) for pk in waiting)


@transaction.atomic(durable=True)
def tidy(*, batch_id: str) -> bool:
    """Bring one batch's rows up to what its members are. Raises NotFound."""
    batch = locks.batch(batch_id)
    if batch.status not in TAKING:
        return False
    now = clock.now()
    members = membership.load(batch, now=now)
    gone = [member for member in members if member.gone]
    staying = len(members) - len(gone)
    leaving = members if staying < LEAST else gone
    if leaving:
        rows = BatchItem.objects.filter(pk__in=[one.item.pk for one in leaving])
        rows.update(left_at=now)
        note(batch, "batch.left", [one.id for one in leaving], now)
    return _settle(batch, staying, now) or bool(leaving)


def _settle(batch: Batch, staying: int, now: datetime) -> bool:
    data = {"batch": batch.pk}
    if staying < LEAST:
        changes = {"settled_at": now}
        transitions.batch.apply(
            batch, "dissolve", actor=FORMER, now=now, changes=changes, data=data
        )
        return True
    most = tools.definition(batch.tool).batchable
    full = most is None or staying >= most.items
    if batch.status == BatchStatus.FORMING and (full or batch.closes_at <= now):
        transitions.batch.apply(batch, "close", actor=FORMER, now=now, data=data)
        return True
    return False


@transaction.atomic(durable=True)
def free_recalled() -> None:
    """What was recalled out of a decided batch is asked anew, and may be put with
    others again."""
    recalled = BatchItem.objects.filter(
        left_at__isnull=True,
        batch__status=BatchStatus.DECIDED,
        request__status=RequestStatus.PENDING,
    ).exclude(request__tier=Tier.ESCALATE)  # which the batch itself asked for
    by_batch: dict[str, list[BatchItem]] = {}
    for item in recalled.select_related("batch").order_by("pk")[:CHUNK]:
        by_batch.setdefault(item.batch_id, []).append(item)
    now = clock.now()
    for items in by_batch.values():
        rows = BatchItem.objects.filter(pk__in=[item.pk for item in items])
        rows.update(left_at=now)
        note(items[0].batch, "batch.left", [item.request_id for item in items], now)
