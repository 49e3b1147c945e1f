"""Personal API tokens: bearer secrets that start with `hpp` and always expire.

They cannot be used for anything that needs a step-up.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from journal import bearer_tokens, clock, log
from journal.errors import BadKey, Invalid, NotFound, at
from policies.models import Person
from reviews.models import PersonalToken

MARK = "hpp"
USUAL_DAYS, MOST_DAYS = 90, 365


@transaction.atomic(durable=True)
def mint(*, person: Person, name: str, days: int = USUAL_DAYS) -> str:
    """Create a token that is valid for `days`; return its text, which is not stored.

    Raises Invalid.
    """
    if not 1 <= days <= MOST_DAYS:
        raise Invalid(errors=[at("days", f"from 1 to {MOST_DAYS}")])
    minted, now = bearer_tokens.mint(MARK), clock.now()
    PersonalToken.objects.create(
        person=person,
        name=name,
        prefix=minted.prefix,
        digest=minted.digest,
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    _tell("person.token_minted", person, minted.prefix)
    return minted.text


@transaction.atomic(durable=True)
def revoke(*, person: Person, token_id: int) -> None:
    """Revoke one of the person's own tokens. Raises NotFound."""
    own = PersonalToken.objects.filter(person=person, pk=token_id)
    token = live().filter(pk__in=own.values("pk")).first()
    if token is None:
        raise NotFound
    own.update(revoked_at=clock.now())
    _tell("person.token_revoked", person, token.prefix)


def end_all(person: Person, now: datetime) -> int:
    """Revoke every token of a person; return how many. Caller is in a transaction."""
    return live().filter(person=person).update(revoked_at=now)


def live() -> QuerySet[PersonalToken]:
    """Tokens that are not revoked, including expired ones.

    A change of the person's password revokes all tokens made before it.
    """
    changed = F("person__password_changed_at")
    kept = Q(person__password_changed_at__isnull=True) | Q(created_at__gt=changed)
    return PersonalToken.objects.filter(kept, revoked_at__isnull=True)


def authenticate(text: str) -> Person:
    """The person a live token belongs to. Raises the same BadKey for every failure."""
    prefix, secret = bearer_tokens.split(MARK, text)
    token = (
        live()
        .select_related("person")
        .filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=clock.now()),
            prefix=prefix,
            person__is_active=True,
        )
        .first()
    )
    if token is None or not bearer_tokens.matches(token.digest, secret):
        raise BadKey
    return token.person


def _tell(kind: str, person: Person, prefix: str) -> None:
    log.append(
        kind,
        actor=log.Actor("person", person.public_id),
        at=clock.now(),
        data={"prefix": prefix},
    )
