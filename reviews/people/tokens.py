"""Personal API tokens: bearer secrets with the mark `hpp`. What needs a step-up is
closed to them, and each of them ends by itself."""

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
    """A new token of this person for so many days, shown this once. Raises Invalid."""
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
    """End one of the person's own tokens now. Raises NotFound."""
    own = PersonalToken.objects.filter(person=person, pk=token_id)
    token = live().filter(pk__in=own.values("pk")).first()
    if token is None:
        raise NotFound
    own.update(revoked_at=clock.now())
    _tell("person.token_revoked", person, token.prefix)


def end_all(person: Person, now: datetime) -> int:
    """End every token of a person who is deactivated; returns how many. Caller holds a
    transaction."""
    return live().filter(person=person).update(revoked_at=now)


def live() -> QuerySet[PersonalToken]:
    """Tokens that nobody ended: a change of the person's password ends them all. Some
    of them may have expired."""
    changed = F("person__password_changed_at")
    kept = Q(person__password_changed_at__isnull=True) | Q(created_at__gt=changed)
    return PersonalToken.objects.filter(kept, revoked_at__isnull=True)


def authenticate(text: str) -> Person:
    """Whose live token this is. Raises BadKey, the same for every fault."""
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
