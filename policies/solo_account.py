"""The one account of solo mode: it has every role and is in every queue. Who runs the
gate signs in to it by a link that works once."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import Group
from django.core import signing

from journal import clock, log
from journal.errors import Conflict, NotFound
from journal.operations import operation

from . import people
from .choices import Role
from .first_administrator import SETUP
from .models import Person
from .solo import is_solo

SALT = "counterseal.solo"
LINK_AGE = timedelta(days=1)


class LinkUsed(NotFound):
    """This link has been used, or is too old. Nothing was changed. Whoever runs the
    gate prints a new one with `counterseal setup-link`."""


def find_others(username: str) -> list[str]:
    """The names of other accounts than this one, active or not."""
    others = Person.objects.exclude(username=username).order_by("username")
    return list(others.values_list("username", flat=True))


@operation(
    writes="Person, QueueUserPermission",
    logs="person.added, person.admitted",
    after="wake-up",
)
def ensure_solo_person(username: str, password: str) -> Person:
    """The account; made where it is missing, and let into queues that are new to it.
    Raises Conflict outside solo mode, and beside other accounts."""
    if not is_solo() or find_others(username):  # guard: solo-alone
        raise Conflict("This gate is not for one person alone. Nothing was changed.")
    person = Person.objects.filter(username=username).first()
    if person is None:
        person = Person.objects.create_user(username, password=password)
        roles = [Group.objects.get_or_create(name=role.value)[0] for role in Role]
        person.groups.set(roles)
        data = {"person": person.public_id, "role": "all"}
        log.append("person.added", actor=SETUP, at=clock.now(), data=data)
    people.admit_everywhere(person, by=SETUP)
    return person


def create_link_token(person: Person) -> str:
    """What makes an address a link that signs this person in, once."""
    return signing.dumps([person.public_id, _describe_last_login(person)], salt=SALT)


def check_link_token(token: str) -> Person:
    """The person whom the link signs in. Raises LinkUsed."""
    if not is_solo():
        raise LinkUsed
    try:
        who, last_login = signing.loads(token, salt=SALT, max_age=LINK_AGE)
    except (signing.BadSignature, ValueError, TypeError):
        raise LinkUsed from None
    person = Person.objects.filter(public_id=who, is_active=True).first()
    if person is None or _describe_last_login(person) != last_login:
        raise LinkUsed
    return person


@operation(writes="Person")
def use_link_token(token: str) -> Person:
    """The person whom the link signs in; it has no other use. Raises LinkUsed."""
    person = check_link_token(token)
    unused = Person.objects.filter(pk=person.pk, last_login=person.last_login)
    if not unused.update(last_login=clock.now()):  # guard: link-once
        raise LinkUsed
    return person


def _describe_last_login(person: Person) -> str:
    return person.last_login.isoformat() if person.last_login else ""
