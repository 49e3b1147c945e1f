"""Personal API tokens: `hpp_<prefix>_<secret>`, stored hashed. What needs a step-up
is closed to them."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from django.db import transaction
from django.db.models import Q

from journal import clock, ids, log
from journal.errors import BadKey, NotFound
from policies.models import Person

from .models import PersonalToken

MARK = "hpp"


def _random(length: int) -> str:
    return "".join(secrets.choice(ids.ALPHABET) for _ in range(length))


def _digest(secret: str) -> str:
    return "sha256:" + hashlib.sha256(secret.encode()).hexdigest()


@transaction.atomic(durable=True)
def mint(*, person: Person, name: str) -> str:
    """A new token of this person, shown this once."""
    prefix, secret = _random(8), _random(32)
    PersonalToken.objects.create(
        person=person, name=name, prefix=prefix, digest=_digest(secret)
    )
    _tell("person.token_minted", person, prefix)
    return f"{MARK}_{prefix}_{secret}"


@transaction.atomic(durable=True)
def revoke(*, person: Person, token_id: int) -> None:
    """End one of the person's own tokens now. Raises NotFound."""
    own = PersonalToken.objects.filter(person=person, pk=token_id)
    token = own.filter(revoked_at__isnull=True).first()
    if token is None:
        raise NotFound
    own.update(revoked_at=clock.now())
    _tell("person.token_revoked", person, token.prefix)


def authenticate(text: str) -> Person:
    """Whose live token this is. Raises BadKey, the same for every fault."""
    mark, _, rest = text.partition("_")
    prefix, _, secret = rest.partition("_")
    token = (
        PersonalToken.objects.select_related("person")
        .filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=clock.now()),
            prefix=prefix,
            revoked_at__isnull=True,
            person__is_active=True,
        )
        .first()
    )
    found = token is not None and hmac.compare_digest(token.digest, _digest(secret))
    if mark != MARK or token is None or not found:
        raise BadKey
    return token.person


def _tell(kind: str, person: Person, prefix: str) -> None:
    log.append(
        kind,
        actor=log.Actor("person", person.public_id),
        at=clock.now(),
        data={"prefix": prefix},
    )
