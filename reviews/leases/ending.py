"""How a hold ends by itself: given back, run out, or over with the decision."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from journal import clock, log
from policies.models import Person
from reviews import locks
from reviews.holds.rows import NOTHING_LOST, TIMER, clear, free
from reviews.models import ApprovalRequest, Lease

CHUNK = 500


@transaction.atomic(durable=True)
def release(*, request_id: str, person: Person, token: str = "") -> bool:
    """Give a request back; False when it was not theirs. A `token` names one taking:
    a page that is left late does not give back what a newer one holds."""
    lease = locks.lease(request_id)
    if lease is None or lease.holder_id != person.pk:
        return False
    if token and token != lease.token:
        return False
    actor = log.Actor("person", person.public_id)
    free(lease, "lease.released", actor, clock.now())
    return True


@transaction.atomic(durable=True)
def lapse_chunk() -> int:
    """Free up to 500 leases that ran out while somebody waits for them; how many."""
    now = clock.now()
    over = Lease.objects.filter(
        holder__isnull=False, until__lte=now, asked_by__len__gt=0
    )
    rows = list(locks.leases_due(over.order_by("pk"))[:CHUNK])
    for lease in rows:
        holder = lease.holder.public_id if lease.holder else ""
        free(lease, "lease.lapsed", TIMER, now, {"holder": holder})
    return len(rows)


def let_go(request: ApprovalRequest, person: Person, now: datetime) -> None:
    """What this person holds is free again. Caller holds the request's lock."""
    lease = locks.lease(request.pk)
    if lease is not None and lease.holder_id == person.pk:
        free(lease, "lease.released", log.Actor("person", person.public_id), now)


def settle(held: Iterable[tuple[Lease | None, ApprovalRequest]]) -> None:
    """Decisions were made: whoever was at these no longer is. Their records say so;
    the leases write none. Caller holds the locks of all."""
    over = []
    for lease, request in held:
        if lease is not None and _says_something(lease):
            lease.request = request
            over.append(lease)
    clear(over, NOTHING_LOST)


def _says_something(lease: Lease) -> bool:
    kept = lease.holder_id or lease.asked_by or lease.lost_by_id or lease.broken
    return bool(kept)
