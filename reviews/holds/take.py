"""Taking, renewing, breaking and offering a hold on a request.

A hold lasts five minutes and is renewed while its holder works on the request. A person
has at most three. A supervisor can break another person's hold, the holder can offer it
to a colleague, and others can ask to be told when the request is free.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from journal import clock, ids, notify, outbox
from journal.errors import (
    AlreadyDecided,
    Conflict,
    InvalidInput,
    NotPermitted,
    ReasonMissing,
    RequestExpired,
    build_field_error,
)
from journal.operations import operation
from policies.choices import Role
from policies.models import Person
from policies.people import build_actor
from reviews import locks, permissions
from reviews.choices import LostHow, RequestStatus
from reviews.grants import uncertain
from reviews.models import ApprovalRequest, Hold
from reviews.stops import incidents

from .rows import (
    NOTHING_LOST,
    build_lost_columns,
    clear_holds,
    free_hold,
    is_held,
    log_hold_event,
    log_lapse,
)

HOLD_TIME = timedelta(minutes=5)
MAX_HOLDS = 3
NOT_OFFERED = "This is no longer offered to you. Nothing was changed."


@dataclass(frozen=True, slots=True)
class HoldResult:
    """The result of asking for a hold: who holds the request now, and until when."""

    holder: Person | None
    own: bool = False
    until: datetime | None = None
    token: str = ""


@operation(
    locks="request, the person's holds (advisory), Hold, those that make room (skip "
    "locked)",
    writes="Hold",
    logs="hold.taken or hold.handed_over; hold.lapsed, hold.released",
    after="mail, wake-up",
)
def take_hold(*, request_id: str, person: Person, accept: bool = False) -> HoldResult:
    """Take a hold on a request that this person may decide.

    Nothing changes while another person holds it. With `accept` the person takes it
    from the holder who offered it to them. Taking it again gives a new token and keeps
    an offer. When the person would have more than three, the hold that was renewed
    longest ago is freed, one that is offered last of all. Raises NotFound,
    NotPermitted, AlreadyEscalated, AlreadyDecided, RequestExpired, or with `accept`
    Conflict when the offer has ended and another person holds it.
    """
    request = locks.lock_request_or_canary(request_id)
    now = clock.now()
    check_request_open(request, now)
    permissions.check_can_decide(person, request, request.sealed)
    hold = assign_hold(request, person, now, accept=accept)
    if accept and not hold.own:
        raise Conflict(f"{NOT_OFFERED} {hold.holder} has claimed it.")
    return hold


def check_request_open(request: ApprovalRequest, now: datetime) -> None:
    """Raises AlreadyDecided or RequestExpired. The caller holds the request's lock."""
    incidents.catch_up_deadline(request, now)
    if request.status != RequestStatus.PENDING:
        raise AlreadyDecided("There is nothing left to decide. Nothing was changed.")
    if request.expires_at <= now:
        raise RequestExpired(f"This has expired. {uncertain.describe_effect(request)}")


def renew_hold(*, request_id: str, person: Person) -> HoldResult | None:
    """Renew a hold for five minutes; None when the person no longer has it. A lapsed
    hold that nobody else has taken is taken again, with the errors of `take_hold`."""
    held = Hold.objects.filter(
        pk=request_id, holder=person, request__status=RequestStatus.PENDING
    )
    now = clock.now()
    if held.filter(until__gt=now).update(until=now + HOLD_TIME):
        return HoldResult(person, own=True, until=now + HOLD_TIME)
    if not held.exists():
        return None
    return take_hold(request_id=request_id, person=person)


def assign_hold(
    request: ApprovalRequest, person: Person, now: datetime, *, accept: bool = False
) -> HoldResult:
    """Give the hold to a person who may decide the request, unless another has it. The
    caller has checked the person and holds the request's lock."""
    locks.lock_holds_of_person(person.public_id)
    before = locks.lock_hold(request.pk)
    offered = before is not None and accept and before.offered_to_id == person.pk
    others = before is not None and before.holder_id != person.pk
    if before is not None and others and is_held(before, now) and not offered:
        return HoldResult(before.holder, until=before.until)
    _free_oldest_holds(person, request, now)
    taken = _write_hold(request, person, before, now)
    _log_taken(request, person, before, now)
    notify.announce(request.proposal_id)
    return taken


def _write_hold(
    request: ApprovalRequest, person: Person, before: Hold | None, now: datetime
) -> HoldResult:
    own = before is not None and before.holder_id == person.pk
    since = before.taken_at if before is not None and own else now
    asked = before.asked_by if before is not None else []
    hold = Hold(
        request=request,
        holder=person,
        token=ids.new("l"),
        taken_at=since,
        until=now + HOLD_TIME,
        asked_by=[public_id for public_id in asked if public_id != person.public_id],
        **_compute_kept_loss(before, person, now),
    )
    if before is not None and own and is_held(before, now):  # an offer ends with it
        hold.offered_to_id = before.offered_to_id
        hold.declined_by_id = before.declined_by_id
    fields = ["holder", "token", "taken_at", "until", "asked_by"]
    fields += ["offered_to", "declined_by", *NOTHING_LOST]
    Hold.objects.bulk_create(
        [hold], update_conflicts=True, unique_fields=["request"], update_fields=fields
    )
    return HoldResult(person, own=True, until=hold.until, token=hold.token)


def _compute_kept_loss(
    before: Hold | None, person: Person, now: datetime
) -> dict[str, Any]:
    """The columns about a lost hold once this person has taken the request. A person
    who holds it again is not told any more that they lost it."""
    if before is None:
        return NOTHING_LOST
    if before.holder_id not in {None, person.pk} and is_held(before, now):
        over = build_lost_columns(before, person, LostHow.HANDED_OVER, now)
        return {**over, "broken": before.broken}
    if before.lost_by_id == person.pk:
        stays = before.broken and before.lost_how != LostHow.BROKEN
        return {**NOTHING_LOST, "broken": stays}
    return {name: getattr(before, name) for name in NOTHING_LOST}


def _log_taken(
    request: ApprovalRequest, person: Person, before: Hold | None, now: datetime
) -> None:
    """Log who took the hold from whom; taking one's own again is a renewal, unless it
    lapsed with an offer."""
    actor = build_actor(person)
    held = before is not None and is_held(before, now)
    if before is None or before.holder is None:
        log_hold_event(request, "hold.taken", actor, now)
    elif before.holder == person and (held or before.offered_to is None):
        return
    elif held:
        former = before.holder.public_id
        log_hold_event(request, "hold.handed_over", actor, now, {"from": former})
        outbox.publish("request.handed_over", request.pk, person=former)
    else:
        log_lapse(before, now)
        log_hold_event(request, "hold.taken", actor, now)


def _free_oldest_holds(person: Person, request: ApprovalRequest, now: datetime) -> None:
    others = Hold.objects.filter(
        holder=person, until__gt=now, request__status=RequestStatus.PENDING
    ).exclude(pk=request.pk)
    actor = build_actor(person)
    offered_first = F("offered_to").asc(nulls_last=True)
    kept_first = others.order_by(offered_first, "-until")
    for hold in locks.lock_due_holds(kept_first)[MAX_HOLDS - 1 :]:
        free_hold(hold, "hold.released", actor, now, {"cause": "room"})


@operation(
    locks="request, Hold", writes="Hold", logs="hold.broken", after="mail, wake-up"
)
def break_hold(*, request_id: str, person: Person, reason: str) -> None:
    """End somebody else's hold as a supervisor, with a reason. The holder is told, and
    the next decision is flagged. Raises NotFound, NotPermitted, ReasonMissing when none
    is given, or Conflict when nobody else holds the request."""
    request = locks.lock_request_shown_to(person, request_id)
    now = clock.now()
    if (
        permissions.check_admitted_to_queue(person, request.queue_id)
        is not Role.SUPERVISOR
    ):
        raise NotPermitted(
            "Only a supervisor can end another person's claim. Nothing was changed."
        )
    if not reason.strip():
        raise ReasonMissing("Enter a reason; it is logged. Nothing was changed.")
    hold = locks.lock_hold(request_id)
    if hold is None or not is_held(hold, now) or hold.holder == person:
        raise Conflict("Nobody else has claimed this any more. Nothing was changed.")
    actor = build_actor(person)
    holder = hold.holder.public_id if hold.holder else ""
    log_hold_event(
        request, "hold.broken", actor, now, {"holder": holder}, {"reason": reason}
    )
    clear_holds([hold], build_lost_columns(hold, person, LostHow.BROKEN, now))
    outbox.publish("request.broken", request.pk, person=holder)
    notify.announce(request.proposal_id)


@operation(
    locks="request, the person's holds (advisory), Hold, those that make room (skip "
    "locked)",
    writes="Hold",
    logs="hold.offered; hold.taken, hold.lapsed, hold.released, hold.offer_withdrawn",
    after="mail, wake-up",
)
def offer_hold(*, request_id: str, person: Person, to: Person) -> None:
    """Offer a hold to a colleague who may decide the request.

    The hold stays with its holder until the colleague takes it, and the offer ends with
    the hold; the holder is told of an offer that nobody answered. Offering a free
    request takes a hold on it first; an offer to somebody else is withdrawn. Raises
    NotFound, NotPermitted, AlreadyEscalated, AlreadyDecided, RequestExpired,
    InvalidInput when the colleague may not decide it, or Conflict when another person
    holds it.
    """
    request = locks.lock_request_shown_to(person, request_id)
    now = clock.now()
    check_request_open(request, now)
    permissions.check_can_decide(person, request, request.sealed)
    shown = copy(request)
    shown.canary_for = ""  # to its reviewer, a canary is a request like any other
    if to == person or permissions.describe_why_cannot_decide(
        to, shown, request.sealed
    ):
        raise InvalidInput(errors=[build_field_error("to", "they cannot decide this")])
    if not assign_hold(request, person, now).own:
        raise Conflict("Someone else has claimed this. Nothing was changed.")
    before = locks.lock_hold(request.pk)
    if before is not None and before.offered_to not in {None, to}:
        _end_offer(before, "hold.offer_withdrawn", person, now)
    Hold.objects.filter(pk=request.pk).update(offered_to=to, declined_by=None)
    actor = build_actor(person)
    log_hold_event(request, "hold.offered", actor, now, {"to": to.public_id})
    if not request.canary:  # the colleague cannot see it
        outbox.publish("request.offered", request.pk, person=to.public_id)
    notify.announce(request.proposal_id)


@operation(locks="Hold", writes="Hold", logs="hold.declined", after="mail, wake-up")
def decline_offer(*, request_id: str, person: Person) -> None:
    """Refuse a hold that its holder offered to this person. The holder keeps it and is
    told. Raises Conflict when it is not offered to this person any more."""
    hold, now = locks.lock_hold(request_id), clock.now()
    if hold is None or hold.offered_to_id != person.pk or not is_held(hold, now):
        raise Conflict(NOT_OFFERED)
    holder = hold.holder.public_id if hold.holder else ""
    _end_offer(hold, "hold.declined", person, now)
    Hold.objects.filter(pk=hold.pk).update(declined_by=person)
    outbox.publish("request.declined", hold.pk, person=holder)


@operation(locks="Hold", writes="Hold", logs="hold.offer_withdrawn", after="wake-up")
def withdraw_offer(*, request_id: str, person: Person) -> None:
    """Take back an offer and keep the hold. Raises Conflict when this person does not
    offer the request any more."""
    hold, now = locks.lock_hold(request_id), clock.now()
    own = hold is not None and hold.holder_id == person.pk and is_held(hold, now)
    if hold is None or not own or hold.offered_to is None:
        raise Conflict("You do not offer this to anyone now. Nothing was changed.")
    _end_offer(hold, "hold.offer_withdrawn", person, now)


def _end_offer(hold: Hold, kind: str, person: Person, now: datetime) -> None:
    """End the offer of a hold and log it. The caller holds the lock of the hold."""
    if kind == "hold.declined":
        data = {"from": hold.holder.public_id if hold.holder else ""}
    else:
        data = {"to": hold.offered_to.public_id if hold.offered_to else ""}
    log_hold_event(hold.request, kind, build_actor(person), now, data)
    Hold.objects.filter(pk=hold.pk).update(offered_to=None)
    notify.announce(hold.request.proposal_id)


@operation(locks="Hold", writes="Hold")
def record_waiting_person(*, request_id: str, person: Person) -> bool:
    """Record that the person wants to be told when the request is free. False when it
    is free already."""
    hold = locks.lock_hold(request_id)
    if hold is None or not is_held(hold, clock.now()):
        return False
    if person.public_id not in hold.asked_by and hold.holder_id != person.pk:
        hold.asked_by.append(person.public_id)
        hold.save(update_fields=["asked_by"])
    return True
