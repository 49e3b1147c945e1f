"""People as an identity provider keeps them over SCIM 2.0.

The provider's word counts alone, as at a sign-in through it (single_sign_on.py): two
administrators gave it its token. It lets nobody in whom an administrator of the gate
deactivated, or whose invitation waits.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError
from django.db.models import Q, QuerySet

from journal import clock, log, transactions
from journal.errors import (
    Conflict,
    FieldError,
    InvalidInput,
    NotFound,
    NotPermitted,
    build_field_error,
)
from journal.operations import operation
from policies import people, second_factors, substitutes
from policies.choices import Role
from policies.models import (
    FederatedIdentity,
    Person,
    ProvisionedMember,
    ProvisionedPerson,
    ProvisioningToken,
)
from policies.people import NewPerson, PersonChange
from reviews import locks

from . import accounts, group_authority
from .provisioning_tokens import build_provider_actor

LONGEST_NAME, LONGEST_ID = 150, 255
NOBODY = "AnonymousUser"  # django-guardian's row for whoever is not signed in
UNIQUE = "uniqueness"  # the scimType of a value that another resource has
CHANGES = (
    "Person, ProvisionedPerson, ProvisionedMember, PersonalToken, QueueUserPermission,"
    " Stop, Substitution"
)


@dataclass(frozen=True, slots=True)
class UserState:
    """A person as the provider describes them."""

    user_name: str
    email: str
    first_name: str = ""
    last_name: str = ""
    external_id: str = ""
    active: bool = True


def select_users() -> QuerySet[Person]:
    """Everybody with an account whom the provider has not deleted, in a fixed order."""
    rows = Person.objects.exclude(username=NOBODY)
    return (
        rows.filter(Q(provisioned=None) | Q(provisioned__removed_at=None))
        .select_related("provisioned")
        .order_by("pk")
    )


def load_user(public_id: str) -> Person:
    """The person with this id. Raises NotFound."""
    person = select_users().filter(public_id=public_id).first()
    if person is None:
        raise NotFound(f"No user has the id {public_id[:40]}.")
    return person


def describe_user(person: Person) -> UserState:
    """The person as they are now."""
    row = find_provisioned(person)
    return UserState(
        user_name=person.username,
        email=person.email,
        first_name=person.first_name,
        last_name=person.last_name,
        external_id=row.external_id if row else "",
        active=person.is_active,
    )


def find_provisioned(person: Person) -> ProvisionedPerson | None:
    """What the provider keeps of the person; None before it wrote anything."""
    row: ProvisionedPerson | None = getattr(person, "provisioned", None)
    return row


@operation(
    locks="person",
    writes=CHANGES,
    logs="person.added, person.changed, person.reactivated",
    after="wake-up",
)
def create_user(wanted: UserState, *, token: ProvisioningToken) -> Person:
    """Add a person, who may do nothing until a group lets them, and has no password.
    One whom the provider deleted before comes back. Raises InvalidInput, NotPermitted,
    and Conflict for a name or a mailbox that another account has."""
    by = build_provider_actor(token)
    _check_values(wanted)
    deleted = _lock_deleted(wanted.user_name)
    if deleted is not None:
        _save_row(deleted, removed_at=None)
        return _apply_state(load_user(deleted.public_id), wanted, by)
    _check_free(wanted, None)
    newcomer = NewPerson(
        username=wanted.user_name,
        email=wanted.email,
        password="",
        role=Role.OWNER,
        first_name=wanted.first_name,
        last_name=wanted.last_name,
    )
    try:
        person = people.create_person(newcomer, by=by, active=wanted.active)
    except Conflict as error:  # another account took it meanwhile
        raise Conflict(error.detail, scim_type=UNIQUE) from None
    _save_row(
        person,
        external_id=wanted.external_id,
        deactivated_at=None if wanted.active else clock.now(),
    )
    return load_user(person.public_id)


@operation(
    locks="person",
    writes=CHANGES,
    logs="person.changed, person.deactivated, person.reactivated, stop.raised,"
    " substitution.ended",
    after="a task that revokes the person's approvals, wake-up",
)
def change_user(
    public_id: str,
    change: Callable[[UserState], UserState],
    *,
    token: ProvisioningToken,
) -> Person:
    """Change a person from what they are now to what `change` makes of it. An account
    that ends does so whatever else is wrong in the call. Raises NotFound, InvalidInput,
    NotPermitted for an account that the provider may not let in or give another name or
    mailbox, and Conflict for a name or a mailbox that another account has."""
    person = _lock_user(public_id)
    return _apply_state(
        person, change(describe_user(person)), build_provider_actor(token)
    )


@operation(
    locks="person",
    writes=f"{CHANGES}, TotpDevice, Passkey, RecoveryCode, FederatedIdentity",
    logs="person.changed, person.dismissed, person.deactivated, stop.raised,"
    " substitution.ended, person.factor_removed, person.unfederated",
    after="a task that revokes the person's approvals, wake-up",
)
def remove_user(public_id: str, *, token: ProvisioningToken) -> None:
    """Deactivate the account, and take from the person whatever they may do, their
    second factors and their link with the provider: who comes back under the name may
    be somebody else. For the provider they are gone; the gate keeps them, because its
    records name them. Raises NotFound."""
    person, by = _lock_user(public_id), build_provider_actor(token)
    if person.is_active:
        _end_account(person, by)
    substitutes.end_of(person, by=by)  # guard: removed-substitutions
    ProvisionedMember.objects.filter(person=person).delete()
    nothing = group_authority.NOTHING
    group_authority.apply_access(person, nothing, by=by)  # guard: removed-authority
    with suppress(Conflict):  # without a factor
        second_factors.remove_factor(person, by=by)
    if FederatedIdentity.objects.filter(person=person).delete()[0]:
        data = {"person": person.public_id}
        log.append("person.unfederated", actor=by, at=clock.now(), data=data)
    _save_row(person, removed_at=clock.now())


def _lock_user(public_id: str) -> Person:
    """The person as they are under the lock. Raises NotFound."""
    locks.lock_people([load_user(public_id).pk])
    return load_user(public_id)


def _lock_deleted(user_name: str) -> Person | None:
    """The person of this name whom the provider deleted, as they are under the
    lock."""
    rows = Person.objects.filter(
        username__iexact=user_name, provisioned__removed_at__isnull=False
    ).order_by("pk")
    locks.lock_people(list(rows.values_list("pk", flat=True)))
    return rows.first()


def _apply_state(person: Person, wanted: UserState, by: log.Actor) -> Person:
    before = describe_user(person)
    ends = before.active and not wanted.active
    if ends:
        _end_account(person, by)
    elif wanted.active and not before.active:
        _let_in(person, by)
    try:
        _check_values(wanted, before)
        _check_free(wanted, person)
        _check_identity(person, before, wanted)
    except (InvalidInput, Conflict, NotPermitted):
        if not ends:
            raise
        wanted = before
    _rename_person(person, before, wanted, by)
    if wanted.email != before.email:
        email: Any = PersonChange(email=wanted.email)
        try:
            people.apply_change(person, email, by=by)
        except Conflict as error:  # another account took it meanwhile
            raise Conflict(error.detail, scim_type=UNIQUE) from None
    _save_row(person, external_id=wanted.external_id)
    return load_user(person.public_id)


def _end_account(person: Person, by: log.Actor) -> None:
    accounts.deactivate(person, by=by)
    _save_row(person, deactivated_at=clock.now())


def _let_in(person: Person, by: log.Actor) -> None:
    row = find_provisioned(person)
    if row is None or row.deactivated_at is None:  # guard: provisioned-reactivation
        raise NotPermitted(
            "active: the provider did not deactivate this account, so it cannot"
            " activate it. Nothing was changed. Two administrators do it on the page of"
            " the person."
        )
    accounts.reactivate(person, by=by)


def _save_row(person: Person, **values: Any) -> None:
    ProvisionedPerson.objects.update_or_create(
        person=person, defaults={"changed_at": clock.now(), **values}
    )


def _rename_person(
    person: Person, before: UserState, wanted: UserState, by: log.Actor
) -> None:
    """Give the person the wanted username and names."""
    changed = {
        field: value
        for field, value, former in (
            ("username", wanted.user_name, before.user_name),
            ("first_name", wanted.first_name, before.first_name),
            ("last_name", wanted.last_name, before.last_name),
        )
        if value != former
    }
    if not changed:
        return
    try:
        with transactions.open_savepoint("Renaming a person"):
            Person.objects.filter(pk=person.pk).update(**changed)
    except IntegrityError:
        raise _build_name_conflict(wanted.user_name) from None
    fields = " ".join(dict.fromkeys("name" if "_" in key else key for key in changed))
    data = {"person": person.public_id, "fields": fields}
    log.append("person.changed", actor=by, at=clock.now(), data=data)


def _check_values(wanted: UserState, before: UserState | None = None) -> None:
    """Raise InvalidInput with what is wrong in each attribute that changes."""
    errors = []
    if before is None or wanted.user_name != before.user_name:
        errors += _check_value(
            UnicodeUsernameValidator(),
            wanted.user_name,
            "userName",
            "may have letters, digits and @ . + - _ only. Map another attribute to it",
        )
    if before is None or wanted.email != before.email:
        rule = "must be a mail address. Map the person's work address to it"
        errors += _check_value(validate_email, wanted.email, "emails", rule)
    if wanted.user_name.lower() == NOBODY.lower():
        rule = f"may not be {NOBODY}, which the gate uses itself. Send another name"
        errors.append(build_field_error("userName", rule))
    lengths = (
        ("userName", wanted.user_name, LONGEST_NAME),
        ("emails", wanted.email, 254),
        ("name.givenName", wanted.first_name, LONGEST_NAME),
        ("name.familyName", wanted.last_name, LONGEST_NAME),
        ("externalId", wanted.external_id, LONGEST_ID),
    )
    for path, text, most in lengths:
        if len(text) > most:
            rule = f"may have at most {most} characters. Shorten it"
            errors.append(build_field_error(path, rule))
    if errors:
        raise InvalidInput("Nothing was changed.", errors=errors)


def _check_value(
    check: Callable[[str], object], text: str, path: str, rule: str
) -> list[FieldError]:
    try:
        check(text)
    except ValidationError:
        return [build_field_error(path, rule)]
    return []


def _check_identity(person: Person, before: UserState, wanted: UserState) -> None:
    """Raise NotPermitted where the account would become somebody else's together with
    what administrators of the gate let it do: a mailbox signs in through the
    provider."""
    changes = {
        "userName": wanted.user_name != before.user_name,
        "emails": wanted.email != before.email,
    }
    if not any(changes.values()):
        return
    rule = (
        "may not change, because administrators of the gate let this person do what"
        " they may do, or are asked to. Send the present value; on the person's page,"
        " two administrators change a mail address. Or give the person all that they"
        " may do by a group of OIDC_GROUPS, and nothing by hand"
    )
    errors = [build_field_error(path, rule) for path in changes if changes[path]]
    given = group_authority.is_given_by_groups(person)
    if not given:  # guard: provisioned-identity
        raise NotPermitted("Nothing was changed.", errors=errors)


def _build_name_conflict(user_name: str) -> Conflict:
    return Conflict(
        f"userName: another account is called {user_name}. Nothing was changed. Find"
        " that account by its userName, or send another one.",
        scim_type=UNIQUE,
    )


def _check_free(wanted: UserState, person: Person | None) -> None:
    """Raise Conflict for a name or a mailbox of another account."""
    others = Person.objects.exclude(pk__in=[person.pk] if person else [])
    if others.filter(username__iexact=wanted.user_name).exists():
        raise _build_name_conflict(wanted.user_name)
    twin = Person(pk=person.pk if person else None, email=wanted.email)
    if twin.same_mailbox():
        raise Conflict(
            "emails: another account has this mail address, perhaps in another"
            " spelling. Nothing was changed. Give each person an address of their own.",
            scim_type=UNIQUE,
        )
