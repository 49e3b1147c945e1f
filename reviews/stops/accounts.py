"""Deactivating and reactivating accounts, with their sessions, tokens and approvals."""

from __future__ import annotations

from django.contrib.auth.hashers import make_password

from journal import clock, log
from journal.errors import Conflict, NotPermitted
from journal.operations import operation
from policies import people
from policies.models import Person
from reviews import permissions
from reviews.models import Decision
from reviews.people import tokens

from . import stops


@operation(
    writes="Person, PersonalToken, Stop",
    logs="person.deactivated, stop.raised",
    after="a task that revokes the person's approvals, wake-up",
)
def deactivate_account(*, person: Person, by: Person) -> None:
    """Deactivate an account, end its sessions and tokens, and discard its password. If
    the person decides or has decided, their decisions are stopped: what they approved
    and has not run is decided again by others or refused. Raises NotPermitted unless
    `by` is another administrator, or Conflict when the account is inactive already."""
    people.check_administrator(by)
    if person.pk == by.pk:
        raise NotPermitted("Another administrator must deactivate your account.")
    now = clock.now()
    votes = (
        permissions.find_deciding_role(person)
        or Decision.objects.filter(reviewer=person).exists()
    )
    count = tokens.revoke_all_tokens(person, now)
    ended = Person.objects.filter(pk=person.pk, is_active=True).update(
        is_active=False, password=make_password(None), password_changed_at=now
    )
    if not ended:
        raise Conflict(f"{person.username} is already deactivated.")
    if votes:
        stops.create_reviewer_stop(reviewer=person, person=by, now=now)
    _log_account_change("person.deactivated", person, by, tokens=str(count))


@operation(writes="Person", logs="person.reactivated")
def reactivate_account(*, person: Person, by: Person) -> None:
    """Activate the account again, without a password until somebody sets one. The stop
    over the person's decisions stays until somebody lifts it. Raises NotPermitted
    unless `by` is an administrator, or Conflict when it is active."""
    people.check_administrator(by)
    inactive = Person.objects.filter(pk=person.pk, is_active=False)
    if not inactive.update(is_active=True):
        raise Conflict(f"{person.username} is already active.")
    _log_account_change("person.reactivated", person, by)


def _log_account_change(kind: str, person: Person, by: Person, **data: str) -> None:
    log.append(
        kind,
        actor=people.build_actor(by),
        at=clock.now(),
        data={"person": person.public_id, **data},
    )
