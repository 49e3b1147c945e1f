"""The row of a lease and its records: what every way of ending one shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from journal import log, notify, outbox
from policies.models import Person
from reviews import transitions
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
