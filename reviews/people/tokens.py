"""Personal API tokens: bearer secrets that start with `csp` and always expire.

They cannot be used for anything that needs a step-up.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import F, Q, QuerySet

from journal import bearer_tokens, clock, log
from journal.clock import ClockTimestamp
from journal.errors import InvalidAgentKey, InvalidInput, NotFound, build_field_error
from journal.operations import operation
from journal.prepared_queries import Parameter, PreparedQuery
from policies.models import Person
from policies.people import build_actor
from reviews.models import PersonalToken

PERSONAL_PREFIX = "csp"
USUAL_DAYS, MOST_DAYS = 90, 365


@operation(writes="PersonalToken", logs="person.token_minted", after="wake-up")
def create_token(*, person: Person, name: str, days: int = USUAL_DAYS) -> str:
    """Create a token that is valid for `days`; return its text, which is not stored.
    Raises InvalidInput."""
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(errors=[build_field_error("days", f"from 1 to {MOST_DAYS}")])
    minted, now = bearer_tokens.create_token(PERSONAL_PREFIX), clock.now()
    PersonalToken.objects.create(
        person=person,
        name=name,
        prefix=minted.prefix,
        digest=minted.digest,
        created_at=now,
        expires_at=now + timedelta(days=days),
    )
    _log_token_change("person.token_minted", person, minted.prefix)
    return minted.text


@operation(writes="PersonalToken", logs="person.token_revoked", after="wake-up")
def revoke_token(*, person: Person, token_id: int) -> None:
    """Revoke one of the person's own tokens. Raises NotFound."""
    own = PersonalToken.objects.filter(person=person, pk=token_id)
    token = select_live_tokens().filter(pk__in=own.values("pk")).first()
    if token is None:
        raise NotFound
    own.update(revoked_at=clock.now())
    _log_token_change("person.token_revoked", person, token.prefix)


def revoke_all_tokens(person: Person, now: datetime) -> int:
    """Revoke every token of a person; return how many. Caller is in a transaction."""
    return select_live_tokens().filter(person=person).update(revoked_at=now)


def select_live_tokens() -> QuerySet[PersonalToken]:
    """Tokens that are not revoked, including expired ones. A change of the person's
    password revokes all tokens made before it."""
    changed = F("person__password_changed_at")
    newer = Q(person__password_changed_at__isnull=True) | Q(created_at__gt=changed)
    return PersonalToken.objects.filter(newer, revoked_at__isnull=True)


_VALID_TOKEN = PreparedQuery(
    lambda: (
        select_live_tokens()
        .select_related("person")
        .filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=ClockTimestamp()),
            prefix=Parameter("prefix"),
            person__is_active=True,
        )
    )
)


def authenticate_token(text: str) -> Person:
    """The person a live token belongs to. Raises the same InvalidAgentKey for every
    failure. One statement."""
    prefix, secret = bearer_tokens.parse_token(PERSONAL_PREFIX, text)
    token = _VALID_TOKEN.fetch_first(prefix=prefix)
    if token is None or not bearer_tokens.is_matching_secret(token.digest, secret):
        raise InvalidAgentKey
    return token.person


def _log_token_change(kind: str, person: Person, prefix: str) -> None:
    log.append(
        kind,
        actor=build_actor(person),
        at=clock.now(),
        data={"prefix": prefix},
    )
