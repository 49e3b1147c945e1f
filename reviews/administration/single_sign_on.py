"""Signing in through an identity provider (OpenID Connect): whose account it is, and
what the provider's groups let the person do here."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import IntegrityError

from journal import clock, log, transactions
from journal.errors import Conflict, InvalidInput, NotPermitted
from journal.operations import operation
from policies import people
from policies.group_access import GroupAccess, combine_access
from policies.models import FederatedIdentity, Person
from policies.people import NewPerson
from reviews import locks

from . import group_authority

LONGEST_NAME = 150
CHANGED = "Your account changed while you signed in. Nothing was changed. Try again."


@dataclass(frozen=True, slots=True)
class ProviderAccount:
    """What the provider says of whoever it signed in, once its answer was checked. The
    address is empty where nobody checked that it is theirs."""

    issuer: str
    subject: str
    email: str
    username: str
    first_name: str
    last_name: str
    groups: frozenset[str]


@operation(
    locks="person",
    writes="Person, FederatedIdentity, QueueUserPermission",
    logs="person.federated, person.added, person.changed, person.admitted,"
    " person.dismissed",
    after="wake-up",
)
def admit_account(account: ProviderAccount) -> Person:
    """The person of this account, as the provider's groups let them act from now on.
    The first time, an account is linked with the person who has its mailbox, and
    without one a person is added if a group says so. Raises NotPermitted for a
    deactivated person, one whose groups mean nothing here, and a mailbox whose person
    is linked already; Conflict where two sign-ins were the first one at once, or the
    person changed meanwhile."""
    groups = group_authority.load_groups()
    person = _find_person(account)
    known = person or Person(email=account.email).same_mailbox()
    locks.lock_people([known.pk] if known else [])  # before their groups are read
    person = _find_person(account)
    if person not in (None, known):
        raise Conflict(CHANGED)
    access = combine_access(groups, _read_groups(account, known))
    if person is not None:
        _check_active(person)
    if groups and access is None:  # guard: federated-groups
        raise NotPermitted(
            "None of your groups at the provider may use this gate. Ask whoever manages"
            " them."
        )
    if person is None:
        person = _link(account, _find_by_mailbox(account, known), access)
    if access is not None:
        group_authority.apply_access(person, access, by=log.SYSTEM)
    return person


def _read_groups(account: ProviderAccount, person: Person | None) -> frozenset[str]:
    """The groups that count: those that the provider keeps here over SCIM, as the
    account's answer may not have them all; else those of the answer."""
    names = group_authority.read_provisioned_groups(person) if person else None
    return account.groups if names is None else names


def _find_person(account: ProviderAccount) -> Person | None:
    identity = FederatedIdentity.objects.filter(
        issuer=account.issuer, subject=account.subject
    )
    return Person.objects.filter(federated_identity__in=identity).first()


def _find_by_mailbox(account: ProviderAccount, locked: Person | None) -> Person | None:
    """The person with the mailbox that the provider vouches for, not linked yet. Raises
    Conflict where another one has it by now than the one who is locked."""
    person = Person(email=account.email).same_mailbox()
    if person != locked:
        raise Conflict(CHANGED)
    if person is None:
        return None
    _check_active(person)
    linked = FederatedIdentity.objects.filter(person=person, issuer=account.issuer)
    if linked.exists():  # guard: federated-once
        raise NotPermitted(
            "Another account of the provider signs in as the person with your address."
            " Ask an administrator."
        )
    return person


def _check_active(person: Person) -> None:
    if not person.is_active:
        raise NotPermitted("Your account here is deactivated. Ask an administrator.")


def _link(
    account: ProviderAccount, person: Person | None, access: GroupAccess | None
) -> Person:
    if person is None:
        person = _add_person(account, access)
    values = {
        "issuer": account.issuer,
        "subject": account.subject,
        "linked_at": clock.now(),
    }
    try:
        with transactions.open_savepoint("Linking an account"):
            FederatedIdentity.objects.update_or_create(person=person, defaults=values)
    except IntegrityError:
        raise Conflict("You signed in twice at once. Try again.") from None
    data = {"person": person.public_id, "issuer": account.issuer}
    log.append("person.federated", actor=log.SYSTEM, at=clock.now(), data=data)
    return person


def _add_person(account: ProviderAccount, access: GroupAccess | None) -> Person:
    if access is None or not account.email:
        raise NotPermitted(
            "You have no account here yet, or the provider does not say that it checked"
            " your address. Ask an administrator to invite you."
        )
    try:
        newcomer = NewPerson(
            username=_choose_username(account),
            email=account.email,
            password="",
            role=access.role,
            first_name=account.first_name[:LONGEST_NAME],
            last_name=account.last_name[:LONGEST_NAME],
        )
        return people.create_person(newcomer, by=log.SYSTEM)
    except InvalidInput:
        raise NotPermitted(
            "The provider sent an address that is none. Ask whoever manages it."
        ) from None


def _choose_username(account: ProviderAccount) -> str:
    """The name at the provider or, where it is no username or another person has it,
    the mail address."""
    name = account.username
    try:
        UnicodeUsernameValidator()(name)
    except ValidationError:
        return account.email
    if len(name) > LONGEST_NAME or Person.objects.filter(username=name).exists():
        return account.email
    return name
