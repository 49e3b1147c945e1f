"""The row of a lease and its records: what every way of ending one shares.

What a lease means for a decision: nothing that others do under it, and a mark on
what follows one that was broken.

How a hold ends by itself: given back, run out, or over with the decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from journal import clock, log, notify, outbox
from journal.clock import time_of_day
from journal.errors import Held, LeaseLapsed
from policies.models import Person
from reviews import locks, transitions
from reviews.choices import LostHow, RequestStatus
from reviews.models import ApprovalRequest, Lease

TIMER = log.Actor("system", "timer")
NOTHING_LOST: dict[str, Any] = {
    "lost_by": None,
    "lost_to": None,
    "lost_at": None,
    "lost_how": "",
    "broken": False,
}


def is_held(lease: Lease, now: datetime) -> bool:
    """Whether somebody is at it: a lapsed lease holds nothing."""
    return lease.holder_id is not None and lease.until is not None and lease.until > now


def ended(lease: Lease, by: Person, how: LostHow, now: datetime) -> dict[str, Any]:
    return {
        "lost_by": lease.holder,
        "lost_to": by,
        "lost_at": now,
        "lost_how": how,
        "broken": how is LostHow.BROKEN,
    }


def free(
    lease: Lease,
    kind: str,
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any] | None = None,
) -> None:
    tell(lease.request, kind, actor, now, data)
    clear([lease])
    notify.announce(lease.request.proposal_id)


def clear(leases: Sequence[Lease], lost: Mapping[str, Any] | None = None) -> None:
    """Nobody's again; who asked hears of it, unless there is nothing left to decide."""
    if not leases:
        return
    Lease.objects.filter(pk__in=[lease.pk for lease in leases]).update(
        holder=None,
        token="",
        taken_at=None,
        until=None,
        offered_to=None,
        asked_by=[],
        **(lost or {}),
    )
    waiting = [one for one in leases if one.request.status == RequestStatus.PENDING]
    outbox.publish_many(
        "request.freed",
        [(one.pk, {"person": asked}) for one in waiting for asked in one.asked_by],
    )


def tell(
    request: ApprovalRequest,
    kind: str,
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any] | None = None,
    private: Mapping[str, Any] | None = None,
) -> None:
    log.append(
        kind,
        actor=actor,
        at=now,
        data=data,
        private=private,
        **transitions.request.context(request),
    )


def check(lease: Lease | None, person: Person, now: datetime, token: str = "") -> None:
    """Nobody else may be at it. `token` is the one on the page that the decision comes
    from. Raises Held or LeaseLapsed. Caller locked the lease and its request."""
    if lease is None or not is_held(lease, now) or lease.holder_id == person.pk:
        return
    if token:
        raise LeaseLapsed(
            f"Your hold ended and {lease.holder} took it over at "
            f"{time_of_day(lease.taken_at)}. Your decision was not recorded."
        )
    raise Held(
        f"{lease.holder} is deciding this until {time_of_day(lease.until)}. "
        "Your decision was not recorded. Your note is kept."
    )


def was_broken(lease: Lease | None, person: Person) -> bool:
    """Whether a decision of this person overrides somebody else's hold."""
    if lease is None or not lease.broken:
        return False
    own = lease.lost_how == LostHow.BROKEN and lease.lost_by_id == person.pk
    return not own


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
