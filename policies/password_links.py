"""Links by which a person chooses a password: after an invitation, and after an
administrator reset the former one. A link works once and for three days, and a newer
one ends it.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.core import signing
from django.utils.crypto import get_random_string

from journal import clock, log, outbox
from journal.errors import NotFound
from journal.operations import operation

from . import people
from .models import Person

SALT = "counterseal.password"
LINK_AGE = timedelta(days=3)
# What stands in place of a password while a link is open. Django takes it for none, and
# makes none like it: an account without a password does not await a link by that alone.
_LINKED = f"{UNUSABLE_PASSWORD_PREFIX}link."


class PasswordLinkOver(NotFound):
    """This link has been used, or it is too old, or a newer one was made. Nothing was
    changed. An administrator makes a new one on the page of your account."""


def is_mailed() -> bool:
    """Whether links go to the person's mailbox. Otherwise a page shows each once, to
    the administrator who let the person in."""
    return bool(settings.COUNTERSEAL.mail_url)


def open_link(person: Person) -> None:
    """End the person's password, sessions, tokens and former links, so that
    `create_token` makes a link, and mail it where mail is set up. Caller holds a
    transaction."""
    person.password = f"{_LINKED}{get_random_string(40)}"
    person.password_changed_at = clock.now()
    person.save(update_fields=["password", "password_changed_at"])
    if is_mailed():
        outbox.publish("person.linked", person.public_id)


def is_awaited(person: Person) -> bool:
    """Whether the person has a link to choose a password, and has not used it yet."""
    changed = person.password_changed_at
    return bool(
        person.is_active
        and changed is not None
        and person.password.startswith(_LINKED)
        and clock.now() < changed + LINK_AGE
    )


def create_token(person: Person) -> str:
    """What makes an address a link of this person."""
    return signing.dumps([person.public_id, _describe_state(person)], salt=SALT)


def check_token(token: str) -> Person:
    """The person who chooses a password. Raises PasswordLinkOver."""
    try:
        who, state = signing.loads(token, salt=SALT)
    except (signing.BadSignature, ValueError, TypeError):
        raise PasswordLinkOver from None
    person = Person.objects.filter(public_id=who).first()
    if person is None or not is_awaited(person) or _describe_state(person) != state:
        raise PasswordLinkOver
    return person


@operation(writes="Person", logs="person.password_chosen", after="wake-up")
def choose_password(token: str, password: str) -> Person:
    """Set the password that the person behind the link chose. Raises PasswordLinkOver,
    and InvalidInput for a weak password."""
    person = check_token(token)
    people.check_password(password, person)
    unused = Person.objects.filter(
        pk=person.pk, is_active=True, password_changed_at=person.password_changed_at
    )
    person.set_password(password)
    changed = {"password_changed_at": person.password_changed_at}
    if not unused.update(password=person.password, **changed):
        raise PasswordLinkOver
    log.append(
        "person.password_chosen",
        actor=people.build_actor(person),
        at=clock.now(),
        data={"person": person.public_id},
    )
    return person


def _describe_state(person: Person) -> str:
    changed = person.password_changed_at
    return changed.isoformat() if changed else ""
