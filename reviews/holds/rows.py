"""Holds as rows: freeing them, logging them, and checking them before a decision.

A hold is a person's on a request, stored as a Hold row. It ends when its holder gives
it back, when its time runs out, or when the request is decided. While it lasts nobody
else can decide; a decision after a broken hold is flagged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q

from journal import clock, log, notify, outbox, sweeps
from journal.clock import format_time
from journal.errors import HeldByAnother, HoldLapsed
from journal.operations import operation
from policies.models import Person
from policies.people import build_actor
from reviews import locks, transitions
from reviews.choices import LostHow, RequestStatus
from reviews.models import ApprovalRequest, Hold

TIMER = log.Actor("system", "timer")
NOTHING_LOST: dict[str, Any] = {
    "lost_by": None,
    "lost_to": None,
    "lost_at": None,
    "lost_how": "",
    "broken": False,
}


def is_held(hold: Hold, now: datetime) -> bool:
    """Whether somebody holds the request now; a lapsed hold does not count."""
    return hold.holder_id is not None and hold.until is not None and hold.until > now


def build_lost_columns(
    hold: Hold, by: Person, how: LostHow, now: datetime
) -> dict[str, Any]:
    return {
        "lost_by": hold.holder,
        "lost_to": by,
        "lost_at": now,
        "lost_how": how,
        "broken": how is LostHow.BROKEN,
    }


def free_hold(
    hold: Hold,
    kind: str,
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any] | None = None,
) -> None:
    """End a hold and log it under `kind`. The caller holds the lock of the hold."""
    log_hold_event(hold.request, kind, actor, now, data)
    clear_holds([hold])
    notify.announce(hold.request.proposal_id)


def log_lapse(hold: Hold, now: datetime) -> None:
    """Log that a hold lapsed, and tell its holder of an offer that nobody answered. The
    caller holds the lock of the hold, and changes it."""
    data = {"holder": hold.holder.public_id if hold.holder else ""}
    if hold.offered_to is not None:
        data["to"] = hold.offered_to.public_id
        outbox.publish("request.declined", hold.pk, person=data["holder"])
    log_hold_event(hold.request, "hold.lapsed", TIMER, now, data)


def clear_holds(holds: Sequence[Hold], lost: Mapping[str, Any] | None = None) -> None:
    """Free these holds, and tell the people who asked to be told. Nobody is told about
    a request that is settled. `lost` sets the columns about a lost hold. The caller
    holds the locks of the holds."""
    if not holds:
        return
    Hold.objects.filter(pk__in=[hold.pk for hold in holds]).update(
        holder=None,
        token="",
        taken_at=None,
        until=None,
        offered_to=None,
        declined_by=None,
        asked_by=[],
        **(lost or {}),
    )
    waiting = [hold for hold in holds if hold.request.status == RequestStatus.PENDING]
    outbox.publish_many(
        "request.freed",
        [(hold.pk, {"person": asked}) for hold in waiting for asked in hold.asked_by],
    )


def log_hold_event(
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


def check_hold(
    hold: Hold | None, person: Person, now: datetime, token: str = ""
) -> None:
    """Check that nobody else holds the request. `token` is the hold token of the page
    that sent the decision. Raises HeldByAnother, or HoldLapsed when the person had a
    hold and lost it. The caller holds the locks of the hold and its request."""
    if hold is None or not is_held(hold, now) or hold.holder_id == person.pk:
        return
    if token:
        raise HoldLapsed(
            f"Your claim ended and {hold.holder} claimed the request at "
            f"{format_time(hold.taken_at)}. Your decision was not recorded."
        )
    raise HeldByAnother(
        f"{hold.holder} has claimed this until {format_time(hold.until)}. "
        "Your decision was not recorded. Your note is saved."
    )


def overrides_broken_hold(hold: Hold | None, person: Person) -> bool:
    """Whether a decision of this person follows a broken hold of somebody else."""
    if hold is None or not hold.broken:
        return False
    own = hold.lost_how == LostHow.BROKEN and hold.lost_by_id == person.pk
    return not own


def find_first_free(*, request_ids: Sequence[str], person: Person) -> str:
    """The first of these requests that nobody else holds now; "" if there is none."""
    held = Hold.objects.filter(request__in=request_ids, until__gt=clock.now())
    others = set(held.exclude(holder=person).values_list("request", flat=True))
    return next(
        (request_id for request_id in request_ids if request_id not in others), ""
    )


CHUNK = 500


@operation(locks="Hold", writes="Hold", logs="hold.released", after="mail, wake-up")
def release_hold(
    *, request_id: str, person: Person, token: str = "", leaving: bool = False
) -> bool:
    """Give a hold back; False when the person keeps it, or does not hold the request.

    With a `token` only the hold with that token is given back, so that a page closed
    late does not end a newer hold of the same person. `leaving`: the person only goes
    on to something else, so a hold that they offered to a colleague stays until it runs
    out.
    """
    hold = locks.lock_hold(request_id)
    if hold is None or hold.holder_id != person.pk:
        return False
    if token and token != hold.token:
        return False
    if leaving and hold.offered_to_id is not None:
        return False
    actor = build_actor(person)
    free_hold(hold, "hold.released", actor, clock.now())
    return True


@operation(
    locks="holds (skip locked)",
    writes="Hold",
    logs="hold.lapsed",
    after="mail, wake-up",
)
def free_lapsed_holds() -> int:
    """Free up to 500 lapsed holds that somebody waits for, or that were offered and
    not accepted; return how many."""
    now = clock.now()
    over = Hold.objects.filter(
        Q(asked_by__len__gt=0) | Q(offered_to__isnull=False),
        holder__isnull=False,
        until__lte=now,
    )
    rows = list(locks.lock_due_holds(over.order_by("pk"))[:CHUNK])

    def free(lapsed: list[Hold]) -> None:
        for hold in lapsed:
            to, how = hold.offered_to, LostHow.UNANSWERED
            log_lapse(hold, now)
            clear_holds([hold], build_lost_columns(hold, to, how, now) if to else {})
            notify.announce(hold.request.proposal_id)

    return len(sweeps.apply_to_all(free, rows))


def free_hold_of_person(
    request: ApprovalRequest, person: Person, now: datetime
) -> None:
    """Free the request if this person holds it. The caller holds the request's lock."""
    hold = locks.lock_hold(request.pk)
    if hold is not None and hold.holder_id == person.pk:
        free_hold(hold, "hold.released", build_actor(person), now)


def free_from_outsiders(
    request: ApprovalRequest,
    serving: Collection[str],
    actor: log.Actor,
    now: datetime,
    data: Mapping[str, Any],
) -> None:
    """Free the request if nobody of `serving` (public ids) holds it, end an offer to
    anybody else, and forget who else asked to be told. The caller holds the request's
    lock. `data` is for the log record."""
    hold = locks.lock_hold(request.pk)
    if hold is None:
        return
    waiting = [person for person in hold.asked_by if person in serving]
    if waiting != hold.asked_by:
        hold.asked_by = waiting
        hold.save(update_fields=["asked_by"])
    if hold.holder is not None and hold.holder.public_id not in serving:
        free_hold(hold, "hold.released", actor, now, data)
    elif hold.offered_to is not None and hold.offered_to.public_id not in serving:
        to = {"to": hold.offered_to.public_id}
        log_hold_event(request, "hold.offer_withdrawn", actor, now, to)
        Hold.objects.filter(pk=hold.pk).update(offered_to=None)
        notify.announce(request.proposal_id)


def clear_decided_holds(held: Iterable[tuple[Hold | None, ApprovalRequest]]) -> None:
    """End the holds on requests that were decided. The decisions are logged, so the end
    of these holds is not. The caller holds the locks of all holds and requests."""
    over = []
    for hold, request in held:
        if hold is not None and _has_content(hold):
            hold.request = request
            over.append(hold)
    clear_holds(over, NOTHING_LOST)


def _has_content(hold: Hold) -> bool:
    return bool(hold.holder_id or hold.asked_by or hold.lost_by_id or hold.broken)
