"""The first account of an installation: an administrator, whom nobody can add yet.

`counterseal setup-link` prints a link that works while there is no active
administrator. Whoever opens it makes the account.
"""

from __future__ import annotations

import secrets

from django.core import signing

from journal.errors import NotFound
from journal.log import Actor

from . import people
from .choices import Role
from .models import Person

SALT = "counterseal.setup"
SETUP = Actor("system", "setup")
LINK_SECONDS = 24 * 60 * 60


class SetupClosed(NotFound):
    """This link has expired, or an administrator has an account already. Nothing was
    recorded. Whoever runs the gate prints a new link with `counterseal setup-link`."""


def has_administrator() -> bool:
    """Whether an active administrator exists."""
    rows = Person.objects.filter(is_active=True, groups__name=Role.ADMINISTRATOR)
    return rows.exists()


def create_token() -> str:
    """What makes an address a setup link, for LINK_SECONDS."""
    return signing.dumps(secrets.token_urlsafe(9), salt=SALT)


def check_token(token: str) -> None:
    """Raises SetupClosed for a token that is not or no longer good."""
    try:
        signing.loads(token, salt=SALT, max_age=LINK_SECONDS)
    except signing.BadSignature:
        raise SetupClosed from None
    if has_administrator():
        raise SetupClosed


def add_first_administrator(
    token: str, *, username: str, email: str, password: str, full_name: str
) -> Person:
    """Add the administrator. Raises SetupClosed, and InvalidInput and Conflict as
    `people.add_person`."""
    check_token(token)
    first_name, _, last_name = full_name.strip().partition(" ")
    newcomer = people.NewPerson(
        username=username,
        email=email,
        password=password,
        role=Role.ADMINISTRATOR,
        first_name=first_name,
        last_name=last_name,
    )
    return people.add_person(newcomer, by=SETUP)
