"""Who is at a request: five minutes, taken by opening it, renewed while somebody is
there, given back on leaving. A lease spares people each other's work; it is never an
authority, and every one of them ends (ux.md 0.4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from journal import clock, ids, log, outbox
from journal.errors import (
    Conflict,
    Decided,
    DomainError,
    Expired,
    Held,
    Invalid,
    LeaseLapsed,
    NotYours,
    Reason,
    at,
)
from policies.choices import Role
from policies.models import Person

from . import locks, permissions, transitions
from .choices import LostHow, RequestStatus
from .models import ApprovalRequest, Lease

LEASE = timedelta(minutes=5)
MAX_LEASES = 3
CHUNK = 500
TIMER = log.Actor("system", "timer")
NOTHING_LOST: dict[str, Any] = {
    "lost_by": None,
    "lost_to": None,
    "lost_at": None,
    "lost_how": "",
    "broken": False,
}


@dataclass(frozen=True, slots=True)
class Hold:
    """What came of asking for a request: whose it is now, and until when."""

    holder: Person | None
    mine: bool = False
    until: datetime | None = None
    token: str = ""


@transaction.atomic(durable=True)
def take(*, request_id: str, person: Person, accept: bool = False) -> Hold:
    """Hold a request that this person may decide; no change while another holds it.

    Taking it again gives a new token. `accept` also takes what its holder offered to
    this person. Of more than three, the one renewed longest ago gives way.
    Raises NotFound, NotYours, Escalated, Decided, Expired.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    _check_open(request, now)
    permissions.check_can_decide(person, request, request.sealed)
    return hold(request, person, now, accept=accept)


def _check_open(request: ApprovalRequest, now: datetime) -> None:
    if request.status != RequestStatus.PENDING:
        raise Decided("There is nothing to decide here any more. Nothing was changed.")
    if request.expires_at <= now:
        raise Expired("This has expired. Nothing was executed.")


def take_first(*, request_ids: Iterable[str], person: Person) -> str:
    """Hold the first of these that is free for this person; its id, or nothing."""
    for request_id in request_ids:
        try:
            if take(request_id=request_id, person=person).mine:
                return request_id
        except DomainError:
            continue  # it was settled or taken since it was listed
    return ""


def hold(
    request: ApprovalRequest, person: Person, now: datetime, *, accept: bool = False
) -> Hold:
    """Give the lease to somebody who may decide it, unless another holds it. Caller
    holds the request's lock."""
    locks.leases_of(person.public_id)
    before = locks.lease(request.pk)
    offered = before is not None and accept and before.offered_to_id == person.pk
    others = before is not None and before.holder_id != person.pk
    if before is not None and others and is_held(before, now) and not offered:
        return Hold(before.holder, until=before.until)
    _make_room(person, request, now)
    taken = _write(request, person, before, now)
    _tell_taken(request, person, before, now)
    outbox.announce(request.proposal_id)
    return taken


def is_held(lease: Lease, now: datetime) -> bool:
    """Whether somebody is at it: a lapsed lease holds nothing."""
    return lease.holder_id is not None and lease.until is not None and lease.until > now


def _write(
    request: ApprovalRequest, person: Person, before: Lease | None, now: datetime
) -> Hold:
    goes_on = before is not None and before.holder_id == person.pk
    since = before.taken_at if before is not None and goes_on else now
    asked = before.asked_by if before is not None else []
    lease = Lease(
        request=request,
        holder=person,
        token=ids.new("l"),
        taken_at=since,
        until=now + LEASE,
        asked_by=[one for one in asked if one != person.public_id],
        **_lost(before, person, now),
    )
    fields = ["holder", "token", "taken_at", "until", "offered_to", "asked_by"]
    fields += NOTHING_LOST
    Lease.objects.bulk_create(
        [lease], update_conflicts=True, unique_fields=["request"], update_fields=fields
    )
    return Hold(person, mine=True, until=lease.until, token=lease.token)


def _lost(before: Lease | None, person: Person, now: datetime) -> dict[str, Any]:
    """What is still to be told of a hold that another ended, once this person has
    it: its former holder is told nothing of what they have again."""
    if before is None:
        return NOTHING_LOST
    if before.holder_id not in {None, person.pk} and is_held(before, now):
        ended = _ended(before, person, LostHow.HANDED_OVER, now)
        return {**ended, "broken": before.broken}
    if before.lost_by_id == person.pk:
        stays = before.broken and before.lost_how != LostHow.BROKEN
        return {**NOTHING_LOST, "broken": stays}
    return {name: getattr(before, name) for name in NOTHING_LOST}


def _ended(lease: Lease, by: Person, how: LostHow, now: datetime) -> dict[str, Any]:
    return {
        "lost_by": lease.holder,
        "lost_to": by,
        "lost_at": now,
        "lost_how": how,
        "broken": how is LostHow.BROKEN,
    }


def _tell_taken(
    request: ApprovalRequest, person: Person, before: Lease | None, now: datetime
) -> None:
    """Coming back to one's own is a renewal and no record."""
    actor = log.Actor("person", person.public_id)
    former = before.holder if before is not None else None
    if former == person:
        return
    if former is None:
        _tell(request, "lease.taken", actor, now)
    elif before is not None and is_held(before, now):
        _tell(request, "lease.handed_over", actor, now, {"from": former.public_id})
        outbox.publish("request.handed_over", request.pk, person=former.public_id)
    else:
        _tell(request, "lease.lapsed", TIMER, now, {"holder": former.public_id})
        _tell(request, "lease.taken", actor, now)


def _make_room(person: Person, request: ApprovalRequest, now: datetime) -> None:
    others = Lease.objects.filter(
        holder=person, until__gt=now, request__status=RequestStatus.PENDING
    ).exclude(pk=request.pk)
    actor = log.Actor("person", person.public_id)
    for lease in locks.leases_due(others.order_by("-until"))[MAX_LEASES - 1 :]:
        _free(lease, "lease.released", actor, now, {"cause": "room"})


def renew(*, request_id: str, person: Person) -> Hold | None:
    """Five more minutes for who is still there; None when it is no longer theirs.

    One that lapsed and nobody took is taken again. Raises what `take` raises.
    """
    mine = Lease.objects.filter(
        pk=request_id, holder=person, request__status=RequestStatus.PENDING
    )
    now = clock.now()
    if mine.filter(until__gt=now).update(until=now + LEASE):
        return Hold(person, mine=True, until=now + LEASE)
    if not mine.exists():
        return None
    return take(request_id=request_id, person=person)


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
    _free(lease, "lease.released", actor, clock.now())
    return True


@transaction.atomic(durable=True)
def break_hold(*, request_id: str, person: Person, reason: str) -> None:
    """A supervisor ends somebody else's hold, and says why. Its holder is told, and
    the decision that follows is marked.

    Raises NotFound, NotYours, Reason, Conflict when nobody holds it.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    if permissions.admitted_role(person, request.queue_id) is not Role.SUPERVISOR:
        raise NotYours("Only a supervisor may break a hold. Nothing was changed.")
    if not reason.strip():
        raise Reason("Say why. Nothing was changed. The log keeps it.")
    lease = locks.lease(request_id)
    if lease is None or not is_held(lease, now) or lease.holder == person:
        raise Conflict("Nobody else holds this any more. Nothing was changed.")
    actor = log.Actor("person", person.public_id)
    holder = lease.holder.public_id if lease.holder else ""
    _tell(request, "lease.broken", actor, now, {"holder": holder}, {"reason": reason})
    _clear([lease], _ended(lease, person, LostHow.BROKEN, now))
    outbox.publish("request.broken", request.pk, person=holder)
    outbox.announce(request.proposal_id)


@transaction.atomic(durable=True)
def hand_over(*, request_id: str, person: Person, to: Person) -> None:
    """Offer it to somebody else who may decide it. It stays with its holder until the
    other takes it, so that nothing waits for who is not there; what was free is held
    by offering it.

    Raises NotFound, NotYours, Escalated, Decided, Expired, Invalid, Conflict.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    _check_open(request, now)
    permissions.check_can_decide(person, request, request.sealed)
    if to == person or permissions.can_decide(to, request, request.sealed):
        raise Invalid(errors=[at("to", "they cannot decide this")])
    if not hold(request, person, now).mine:
        raise Conflict("Somebody else holds this now. Nothing was changed.")
    Lease.objects.filter(pk=request.pk).update(offered_to=to)
    actor = log.Actor("person", person.public_id)
    _tell(request, "lease.offered", actor, now, {"to": to.public_id})
    outbox.publish("request.offered", request.pk, person=to.public_id)
    outbox.announce(request.proposal_id)


@transaction.atomic(durable=True)
def ask(*, request_id: str, person: Person) -> bool:
    """Remember who wants to hear when it is free; False when it is free already."""
    lease = locks.lease(request_id)
    if lease is None or not is_held(lease, clock.now()):
        return False
    if person.public_id not in lease.asked_by and lease.holder_id != person.pk:
        lease.asked_by.append(person.public_id)
        lease.save(update_fields=["asked_by"])
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
        _free(lease, "lease.lapsed", TIMER, now, {"holder": holder})
    return len(rows)


def check(lease: Lease | None, person: Person, now: datetime, token: str = "") -> None:
    """Nobody else may be at it. `token` is the one on the page that the decision comes
    from. Raises Held or LeaseLapsed. Caller locked the lease and its request."""
    if lease is None or not is_held(lease, now) or lease.holder_id == person.pk:
        return
    if token:
        raise LeaseLapsed(
            f"Your hold ended and {lease.holder} took it over at "
            f"{lease.taken_at:%H:%M:%S}. Your decision was not recorded."
        )
    raise Held(
        f"{lease.holder} is deciding this until {lease.until:%H:%M:%S}. "
        "Your decision was not recorded. Your note is kept."
    )


def let_go(request: ApprovalRequest, person: Person, now: datetime) -> None:
    """What this person holds is free again. Caller holds the request's lock."""
    lease = locks.lease(request.pk)
    if lease is not None and lease.holder_id == person.pk:
        _free(lease, "lease.released", log.Actor("person", person.public_id), now)


def settle(held: Iterable[tuple[Lease | None, ApprovalRequest]]) -> None:
    """Decisions were made: whoever was at these no longer is. Their records say so;
    the leases write none. Caller holds the locks of all."""
    over = []
    for lease, request in held:
        if lease is not None and _says_something(lease):
            lease.request = request
            over.append(lease)
    _clear(over, NOTHING_LOST)


def _says_something(lease: Lease) -> bool:
    kept = lease.holder_id or lease.asked_by or lease.lost_by_id or lease.broken
    return bool(kept)


def was_broken(lease: Lease | None, person: Person) -> bool:
    """Whether a decision of this person overrides somebody else's hold."""
    if lease is None or not lease.broken:
        return False
    own = lease.lost_how == LostHow.BROKEN and lease.lost_by_id == person.pk
    return not own


def _free(
    lease: Lease,
    kind: str,
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any] | None = None,
) -> None:
    _tell(lease.request, kind, actor, now, data)
    _clear([lease])
    outbox.announce(lease.request.proposal_id)


def _clear(leases: Sequence[Lease], lost: Mapping[str, Any] | None = None) -> None:
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


def _tell(
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
