"""People, their roles and the queues they are admitted to; every change is a record,
so that it can be told later who could have approved what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from guardian.shortcuts import assign_perm, remove_perm

from journal import clock, log
from journal.errors import Conflict, Invalid, at

from .choices import Role
from .models import Person, Queue
from .money import Money


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Somebody to be added. Without a ceiling any amount may be decided."""

    username: str
    email: str
    password: str
    role: Role
    first_name: str = ""
    last_name: str = ""
    ceiling: Money | None = None


@transaction.atomic(durable=True)
def add(newcomer: Newcomer, *, by: log.Actor) -> Person:
    """A person with one role. Raises Invalid for a weak password, Conflict for a name
    that is taken."""
    _check_password(newcomer.password)
    ceiling = newcomer.ceiling
    try:
        person = Person.objects.create_user(
            newcomer.username,
            newcomer.email,
            newcomer.password,
            first_name=newcomer.first_name,
            last_name=newcomer.last_name,
            ceiling_minor=ceiling.minor if ceiling else None,
            ceiling_currency=ceiling.currency if ceiling else "",
        )
    except IntegrityError:
        raise Conflict(f"Somebody is called {newcomer.username} already.") from None
    person.groups.add(Group.objects.get_or_create(name=newcomer.role.value)[0])
    _tell("person.added", person, by, role=newcomer.role.value)
    return person


def _check_password(password: str) -> None:
    try:
        validate_password(password)
    except ValidationError as error:
        raise Invalid(
            errors=[at("password", text) for text in error.messages]
        ) from None


@transaction.atomic(durable=True)
def admit(person: Person, queues: Iterable[Queue], *, by: log.Actor) -> None:
    """Let a person decide in queues, according to their role."""
    for queue in queues:
        assign_perm("policies.decide", person, queue)
        _tell("person.admitted", person, by, queue=queue.name)


@transaction.atomic(durable=True)
def dismiss(person: Person, queues: Iterable[Queue], *, by: log.Actor) -> None:
    """Take that back; it acts on the next check, before an effect too."""
    for queue in queues:
        remove_perm("policies.decide", person, queue)
        _tell("person.dismissed", person, by, queue=queue.name)


def _tell(kind: str, person: Person, by: log.Actor, **data: str) -> None:
    log.append(
        kind, actor=by, at=clock.now(), data={"person": person.public_id, **data}
    )
