"""What others have to do with a hold: a supervisor who ends it, whoever it is offered
to, and who wants to hear when it is free."""

from __future__ import annotations

from django.db import transaction

from journal import clock, log, notify, outbox
from journal.errors import Conflict, Invalid, NotYours, Reason, at
from policies.choices import Role
from policies.models import Person
from reviews import locks, permissions
from reviews.choices import LostHow
from reviews.holds.rows import clear, ended, is_held, tell
from reviews.holds.take import check_open, hold
from reviews.models import Lease


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
    tell(request, "lease.broken", actor, now, {"holder": holder}, {"reason": reason})
    clear([lease], ended(lease, person, LostHow.BROKEN, now))
    outbox.publish("request.broken", request.pk, person=holder)
    notify.announce(request.proposal_id)


@transaction.atomic(durable=True)
def hand_over(*, request_id: str, person: Person, to: Person) -> None:
    """Offer it to somebody else who may decide it. It stays with its holder until the
    other takes it, so that nothing waits for who is not there; what was free is held
    by offering it.

    Raises NotFound, NotYours, Escalated, Decided, Expired, Invalid, Conflict.
    """
    request = locks.approval_request(request_id)
    now = clock.now()
    check_open(request, now)
    permissions.check_can_decide(person, request, request.sealed)
    if to == person or permissions.can_decide(to, request, request.sealed):
        raise Invalid(errors=[at("to", "they cannot decide this")])
    if not hold(request, person, now).mine:
        raise Conflict("Somebody else holds this now. Nothing was changed.")
    Lease.objects.filter(pk=request.pk).update(offered_to=to)
    actor = log.Actor("person", person.public_id)
    tell(request, "lease.offered", actor, now, {"to": to.public_id})
    outbox.publish("request.offered", request.pk, person=to.public_id)
    notify.announce(request.proposal_id)


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
