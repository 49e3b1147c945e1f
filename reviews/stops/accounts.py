"""Accounts that end, and that are opened again: with them the person's sessions, tokens
and approvals."""

from __future__ import annotations

from django.contrib.auth.hashers import make_password
from django.db import transaction

from journal import clock, log
from journal.errors import Conflict, NotYours
from policies import people
from policies.models import Person
from reviews import permissions
from reviews.models import Decision
from reviews.people import tokens

from . import stops


@transaction.atomic(durable=True)
def deactivate(*, person: Person, by: Person) -> None:
    """End an account: its sessions and tokens at once, its password for good. What the
    person approved and has not run is asked again of others or refused.

    Raises NotYours for anyone but an administrator and for oneself, or Conflict when
    the account is deactivated already.
    """
    people.check_administrator(by)
    if person.pk == by.pk:
        raise NotYours("Another administrator deactivates your account.")
    now = clock.now()
    votes = permissions.deciding_role(person) or _has_decided(person)
    count = tokens.end_all(person, now)
    ended = Person.objects.filter(pk=person.pk, is_active=True).update(
        is_active=False, password=make_password(None), password_changed_at=now
    )
    if not ended:
        raise Conflict(f"{person.username} is deactivated already.")
    if votes:
        stops.stop_reviewer(reviewer=person, person=by, now=now)
    _tell("person.deactivated", person, by, tokens=str(count))


@transaction.atomic(durable=True)
def reactivate(*, person: Person, by: Person) -> None:
    """Open the account again; it has no password until it is given one. The switch over
    the person's decisions stays until somebody lifts it on its page.

    Raises NotYours for anyone but an administrator, Conflict when it is active.
    """
    people.check_administrator(by)
    found = Person.objects.filter(pk=person.pk, is_active=False)
    if not found.update(is_active=True):
        raise Conflict(f"{person.username} is active already.")
    _tell("person.reactivated", person, by)


def _has_decided(person: Person) -> bool:
    return Decision.objects.filter(reviewer=person).exists()


def _tell(kind: str, person: Person, by: Person, **data: str) -> None:
    log.append(
        kind,
        actor=people.actor_of(by),
        at=clock.now(),
        data={"person": person.public_id, **data},
    )
