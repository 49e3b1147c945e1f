"""Operations on people, their roles and the queues they are admitted to. Every change
is logged, so that auditors can tell later who could have approved what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import authenticate
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError
from django.http import HttpRequest
from guardian.shortcuts import assign_perm, remove_perm

from journal import clock, log
from journal.errors import (
    Conflict,
    InvalidInput,
    NotPermitted,
    ReauthenticationRequired,
    build_field_error,
)
from journal.operations import operation

from . import solo
from .choices import Role
from .models import ONE_ACCOUNT, Person, Queue, QueueUserPermission
from .money import Money, format_amount


@dataclass(frozen=True, slots=True)
class NewPerson:
    """The input of `add_person`. Without a ceiling the person may decide any amount."""

    username: str
    email: str
    password: str
    role: Role
    first_name: str = ""
    last_name: str = ""
    ceiling: Money | None = None


@dataclass(frozen=True, slots=True)
class PersonChange:
    """The input of `change_person`; None leaves a field as it is. `no_ceiling` removes
    the ceiling, so that the person may decide any amount."""

    role: Role | None = None
    email: str | None = None
    ceiling: Money | None = None
    no_ceiling: bool = False

    @property
    def names(self) -> list[str]:
        """The fields that change."""
        given = {
            "role": self.role is not None,
            "email": self.email is not None,
            "ceiling": self.ceiling is not None or self.no_ceiling,
        }
        return [name for name, changes in given.items() if changes]


@operation(writes="Person", logs="person.added", after="wake-up")
def add_person(newcomer: NewPerson, *, by: log.Actor) -> Person:
    """Add a person with one role. Raises InvalidInput for a weak password or an invalid
    mail address, and Conflict for a user name or a mailbox that another account has,
    and for a second account in solo mode."""
    if (
        solo.is_solo()
        and Person.objects.filter(is_active=True, groups__name__in=list(Role)).exists()
    ):
        raise Conflict(
            "This gate runs in solo mode, for one person. Stop it, start it without"
            " --solo, and add people then."
        )
    check_password(newcomer.password)
    return create_person(newcomer, by=by)


def create_person(newcomer: NewPerson, *, by: log.Actor, active: bool = True) -> Person:
    """Create the account; without a password, nobody can sign in to it yet. Raises
    InvalidInput and Conflict as `add_person`. Caller holds a transaction, and has
    checked who asks."""
    ceiling = newcomer.ceiling
    _check_email(Person(username=newcomer.username, email=newcomer.email))
    try:
        person = Person.objects.create_user(
            newcomer.username,
            newcomer.email,
            newcomer.password or None,
            first_name=newcomer.first_name,
            last_name=newcomer.last_name,
            ceiling_minor=ceiling.minor if ceiling else None,
            ceiling_currency=ceiling.currency if ceiling else "",
            is_active=active,
        )
    except IntegrityError as error:
        raise _build_taken_conflict(newcomer.username, newcomer.email, error) from None
    person.groups.add(_load_group(newcomer.role))
    _log_change("person.added", person, by, role=newcomer.role.value)
    return person


@operation(writes="Person", logs="person.changed", after="wake-up")
def change_person(person: Person, change: PersonChange, *, by: Person) -> Person:
    """Give a person another role, ceiling or mail address. It takes effect on their
    next decision, and on the check before an effect that they approved. Raises
    NotPermitted for anyone but an administrator, and for administrators who change
    their own role or ceiling; InvalidInput and Conflict as `add_person`."""
    check_administrator(by)
    if not change.names:
        raise InvalidInput(
            errors=[
                build_field_error("change", "set a role, a ceiling or an email address")
            ]
        )
    if person.pk == by.pk and change.names != ["email"]:
        raise NotPermitted("Another administrator must change your role or ceiling.")
    return apply_change(person, change, by=build_actor(by))


def apply_change(
    person: Person,
    change: PersonChange,
    *,
    by: log.Actor,
    reason: str = "",
    is_first: bool = False,
) -> Person:
    """Make the change and return the person as they are then; `is_first`: the person
    was only invited, and so could do nothing. Raises InvalidInput and Conflict as
    `add_person`. Caller holds a transaction, and has checked who asks."""
    person = Person.objects.get(pk=person.pk)
    before = _describe_values(person, change)
    if is_first:
        before = dict.fromkeys(before, "none")
    if change.email is not None:
        person.email = change.email
        _check_email(person)
    if "ceiling" in change.names:
        ceiling = change.ceiling
        person.ceiling_minor = ceiling.minor if ceiling else None
        person.ceiling_currency = ceiling.currency if ceiling else ""
    try:
        person.save(update_fields=["email", "ceiling_minor", "ceiling_currency"])
    except IntegrityError as error:
        raise _build_taken_conflict(person.username, person.email, error) from None
    if change.role is not None:
        roles = person.groups.filter(name__in=list(Role))
        person.groups.remove(*roles)
        person.groups.add(_load_group(change.role))
    data = {"fields": " ".join(change.names), **_describe_values(person, change)}
    _log_change("person.changed", person, by, reason, before=before, **data)
    return person


def _describe_values(person: Person, change: PersonChange) -> dict[str, str]:
    """The person's values, now, of the fields that change and do not identify them."""
    values = {}
    if change.role is not None:
        roles = person.groups.filter(name__in=list(Role)).order_by("name")
        values["role"] = " ".join(roles.values_list("name", flat=True)) or "none"
    if "ceiling" in change.names:
        minor = person.ceiling_minor
        limit = None if minor is None else Money(minor, person.ceiling_currency)
        words = f"{format_amount(limit)} {limit.currency}" if limit else "none"
        values["ceiling"] = words
    return values


@operation(writes="Person", logs="person.password_set", after="wake-up")
def set_password(person: Person, password: str, *, by: Person) -> None:
    """Set a new password. It ends every session and personal token of the person.
    Raises NotPermitted for anyone but an administrator, and InvalidInput for a weak
    password."""
    check_administrator(by)
    check_password(password, person)
    person.set_password(password)
    person.save(update_fields=["password", "password_changed_at"])
    _log_change("person.password_set", person, build_actor(by))


@operation(writes="Person", logs="person.password_chosen", after="wake-up")
def change_own_password(person: Person, password: str) -> None:
    """Set the password that a person chose in place of their own, which was checked. It
    ends their other sessions, and their tokens. Raises InvalidInput for a weak one."""
    check_password(password, person)
    person.set_password(password)
    person.save(update_fields=["password", "password_changed_at"])
    _log_change("person.password_chosen", person, build_actor(person))


def check_administrator(person: Person) -> None:
    """Raise NotPermitted unless this person is an active administrator."""
    if not is_administrator(person):
        raise NotPermitted("Only an administrator can do this. Nothing was changed.")


def confirm_password(http: HttpRequest, person: Person, password: str) -> None:
    """Check that the person just typed their own password. Wrong passwords count
    towards the login lockout. Raises ReauthenticationRequired for a wrong one, and
    always for a person without a usable one."""
    signed_in = authenticate(http, username=person.get_username(), password=password)
    if signed_in is None or signed_in.pk != person.pk:
        raise ReauthenticationRequired(
            "That password is not right. Nothing has been decided yet."
        )


def check_owner_or_administrator(owner: Person, by: Person) -> None:
    """Raise NotPermitted unless `by` is active, and the owner or an administrator."""
    if not (by.is_active and by.pk == owner.pk):
        check_administrator(by)


def is_administrator(person: Person) -> bool:
    """Whether this person is active and may change the policy, people and agents."""
    return person.is_active and person.groups.filter(name=Role.ADMINISTRATOR).exists()


def build_actor(person: Person) -> log.Actor:
    """The person as the actor of a log record."""
    return log.Actor("person", person.public_id)


def _load_group(role: Role) -> Group:
    return Group.objects.get_or_create(name=role.value)[0]


def check_password(password: str, person: Person | None = None) -> None:
    """Raise InvalidInput for a password that is too weak, with what it lacks."""
    try:
        validate_password(password, person)
    except ValidationError as error:
        raise InvalidInput(
            errors=[build_field_error("password", text) for text in error.messages]
        ) from None


def _check_email(person: Person) -> None:
    """Raise InvalidInput, or Conflict for a mailbox that another account has."""
    if twin := person.same_mailbox():
        raise _build_mailbox_conflict(twin.username)
    try:
        validate_email(person.email)
    except ValidationError:
        raise InvalidInput(
            errors=[build_field_error("email", "not an email address")]
        ) from None


def _build_taken_conflict(username: str, email: str, error: IntegrityError) -> Conflict:
    """The refusal where another account took the name or mailbox meanwhile."""
    if ONE_ACCOUNT in str(error):
        return _build_mailbox_conflict("Someone")
    return Conflict(f"The username {username} is already taken.")


def _build_mailbox_conflict(username: str) -> Conflict:
    return Conflict(
        f"{username} already has this email address, perhaps in another spelling. Each "
        "person has one account. Nothing was changed."
    )


@operation(writes="QueueUserPermission", logs="person.admitted", after="wake-up")
def admit_to_queues(person: Person, queues: Iterable[Queue], *, by: log.Actor) -> None:
    """Admit a person to queues, so that they can decide there as their role allows."""
    admit(person, queues, by)


def admit_everywhere(person: Person, *, by: log.Actor) -> None:
    """Admit a person to the queues that they are not in. Caller holds a
    transaction."""
    admitted = QueueUserPermission.objects.filter(
        user=person, permission__codename="decide"
    )
    admit(person, Queue.objects.exclude(pk__in=admitted.values("content_object")), by)


def admit(person: Person, queues: Iterable[Queue], by: log.Actor) -> None:
    """`admit_to_queues` as a step. Caller holds a transaction."""
    for queue in queues:
        assign_perm("policies.decide", person, queue)
        _log_change("person.admitted", person, by, queue=queue.name)


@operation(writes="QueueUserPermission", logs="person.dismissed", after="wake-up")
def dismiss_from_queues(
    person: Person, queues: Iterable[Queue], *, by: log.Actor
) -> None:
    """Take a person out of queues. It takes effect on their next decision, and on the
    check before an effect that they approved."""
    dismiss(person, queues, by)


def dismiss(
    person: Person, queues: Iterable[Queue], by: log.Actor, reason: str = ""
) -> None:
    """`dismiss_from_queues` as a step. Caller holds a transaction."""
    for queue in queues:
        remove_perm("policies.decide", person, queue)
        _log_change("person.dismissed", person, by, reason, queue=queue.name)


def _log_change(
    kind: str, person: Person, by: log.Actor, reason: str = "", **data: Any
) -> None:
    log.append(
        kind,
        actor=by,
        at=clock.now(),
        data={"person": person.public_id, **data},
        private={"reason": reason} if reason else None,
    )
