"""Deactivating and reactivating accounts, with their sessions, tokens and approvals."""

from __future__ import annotations

from django.contrib.auth.hashers import make_password

from journal import clock, log
from journal.errors import Conflict, NotPermitted
from journal.operations import operation
from policies import people, substitutes
from policies.models import Person, ProvisionedPerson
from reviews import permissions
from reviews.models import Decision
from reviews.people import tokens
from reviews.stops import stops


@operation(
    writes="Person, PersonalToken, ProvisionedPerson, Stop, Substitution",
    logs="person.deactivated, substitution.ended, stop.raised",
    after="a task that revokes the person's approvals, wake-up",
)
def deactivate_account(*, person: Person, by: Person, reason: str = "") -> None:
    """Deactivate an account, end its sessions and tokens, and discard its password. If
    the person decides or has decided, their decisions are stopped: what they approved
    and has not run is decided again by others or refused. Where the provider
    deactivated it, the account stays so until administrators say otherwise. Raises
    NotPermitted unless `by` is another administrator, or Conflict when an administrator
    deactivated it already."""
    people.check_administrator(by)
    if person.pk == by.pk:
        raise NotPermitted("Another administrator must deactivate your account.")
    deactivate(person, by=people.build_actor(by), administrator=by, reason=reason)


def deactivate(
    person: Person,
    *,
    by: log.Actor,
    administrator: Person | None = None,
    reason: str = "",
) -> None:
    """`deactivate_account` as a step: caller holds a transaction, and has checked who
    asks; without an administrator the provider does. The password is discarded, so that
    whoever reactivates the account lets nobody in by a former one. Raises Conflict when
    the account is inactive already."""
    now = clock.now()
    votes = (
        permissions.find_deciding_role(person)
        or Decision.objects.filter(reviewer=person).exists()
    )
    count = tokens.revoke_all_tokens(person, now)
    ended = Person.objects.filter(pk=person.pk, is_active=True).update(
        is_active=False, password=make_password(None), password_changed_at=now
    )
    # Who an administrator deactivated, the provider does not let in again.
    rows = ProvisionedPerson.objects.filter(person=person, deactivated_at__isnull=False)
    barred = administrator is not None and bool(rows.update(deactivated_at=None))
    if not ended and not barred:
        raise Conflict(f"{person.username} is already deactivated.")
    if ended:
        substitutes.end_of(person, by=by)
    if ended and votes:
        stops.create_reviewer_stop(reviewer=person, person=administrator, now=now)
    _log_account_change("person.deactivated", person, by, reason, tokens=str(count))


@operation(
    writes="Person, ProvisionedPerson", logs="person.reactivated", after="wake-up"
)
def reactivate_account(*, person: Person, by: Person) -> None:
    """Activate the account again, without a password until somebody sets one. The stop
    over the person's decisions stays until somebody lifts it. Raises NotPermitted
    unless `by` is an administrator, or Conflict when it is active."""
    people.check_administrator(by)
    reactivate(person, by=people.build_actor(by))


def reactivate(person: Person, *, by: log.Actor) -> None:
    """`reactivate_account` as a step: caller holds a transaction, and has checked who
    asks. Raises Conflict when it is active."""
    inactive = Person.objects.filter(pk=person.pk, is_active=False)
    if not inactive.update(is_active=True):
        raise Conflict(f"{person.username} is already active.")
    ProvisionedPerson.objects.filter(person=person).update(deactivated_at=None)
    _log_account_change("person.reactivated", person, by)


def _log_account_change(
    kind: str, person: Person, by: log.Actor, reason: str = "", **data: str
) -> None:
    log.append(
        kind,
        actor=by,
        at=clock.now(),
        data={"person": person.public_id, **data},
        private={"reason": reason} if reason else None,
    )
