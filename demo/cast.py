"""The people of the demo: one or two for each role, each with a password and a token
of this installation's own."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group
from django.db import transaction
from guardian.shortcuts import assign_perm

from journal import ids
from journal.errors import InvalidAgentKey
from policies.choices import Role
from policies.models import Person, Queue
from reviews.people import tokens

DOMAIN = "northgate-electronics.example"
REVIEWED = ("reads", "mail", "labels", "refunds", "customers")
"""The queues of reviewers; supervisors are admitted to all."""


@dataclass(frozen=True, slots=True)
class Part:
    """One person: `name` of demo.json, login, full name, role, and ceiling in cents."""

    name: str
    username: str
    full_name: str
    role: Role
    ceiling_minor: int | None = None


CAST = (
    Part("reviewer", "rita", "Rita Okafor", Role.REVIEWER, 50_000),
    Part("reviewer2", "tom", "Tom Brandt", Role.REVIEWER, 50_000),
    Part("supervisor", "sue", "Sue Lindqvist", Role.SUPERVISOR),
    Part("supervisor2", "sam", "Sam Adeyemi", Role.SUPERVISOR),
    Part("administrator", "adam", "Adam Novotny", Role.ADMINISTRATOR),
    Part("administrator2", "alma", "Alma Reyes", Role.ADMINISTRATOR),
    Part("auditor", "otto", "Otto Bergmann", Role.AUDITOR),
    Part("owner", "owen", "Owen Castellan", Role.OWNER),
)

Login = dict[str, str]


def people() -> dict[str, Person]:
    """Everyone of the cast by their name in demo.json; made where they are missing."""
    return {part.name: _person(part) for part in CAST}


@transaction.atomic(durable=True)
def _person(part: Part) -> Person:
    found = Person.objects.filter(username=part.username).first()
    if found is not None:
        return found
    first, _, last = part.full_name.partition(" ")
    person = Person.objects.create_user(
        part.username,
        f"{part.username}@{DOMAIN}",
        first_name=first,
        last_name=last,
        ceiling_minor=part.ceiling_minor,
        ceiling_currency="USD" if part.ceiling_minor is not None else "",
    )
    person.groups.add(Group.objects.get_or_create(name=part.role.value)[0])
    return person


@transaction.atomic(durable=True)
def admit(people: Mapping[str, Person]) -> None:
    """Let reviewers and supervisors decide in their queues."""
    for queue in Queue.objects.all():
        for part in CAST:
            if part.role is Role.SUPERVISOR or (
                part.role is Role.REVIEWER and queue.name in REVIEWED
            ):
                assign_perm("policies.decide", people[part.name], queue)


def logins(people: Mapping[str, Person], kept: Mapping[str, Any]) -> dict[str, Login]:
    """How each of them signs in: what is kept, as long as it still works.

    A password that its person has changed since stays theirs; the kept one is stale.
    """
    found = {name: kept.get(name, {}) for name in people}
    passwords = {name: str(login.get("password", "")) for name, login in found.items()}
    without = {
        name: person
        for name, person in people.items()
        if not (passwords[name] and person.has_usable_password())
    }
    passwords |= _set_passwords(without)
    return {
        name: {
            "username": person.username,
            "password": passwords[name],
            "token": _token(person, str(found[name].get("token", ""))),
        }
        for name, person in people.items()
    }


def _set_passwords(people: Mapping[str, Person]) -> dict[str, str]:
    """A new password for each. Hashing is slow by design, so all cores share it."""
    passwords = {name: _readable() for name in people}
    with ThreadPoolExecutor() as pool:
        hashes = pool.map(make_password, passwords.values())
        for person, hashed in zip(people.values(), hashes, strict=True):
            person.password = hashed
            person.save(update_fields=["password"])
    return passwords


def _token(person: Person, kept: str) -> str:
    try:
        if tokens.authenticate_token(kept) == person:
            return kept
    except InvalidAgentKey:
        pass
    return tokens.create_token(person=person, name="demo")


def _readable() -> str:
    """80 random bits in four groups that can be read out and typed."""
    groups = ("".join(secrets.choice(ids.ALPHABET) for _ in range(4)) for _ in range(4))
    return "-".join(groups)
