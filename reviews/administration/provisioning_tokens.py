"""The tokens by which an identity provider keeps people here over SCIM 2.0.

Whoever has one decides who approves here, so it takes two administrators: one makes it,
and it does nothing until another one confirms it. Several work at a time, so that one
replaces another without a gap. Every call reads the row: a revoked token is dead at
once.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from journal import bearer_tokens, clock, log
from journal.errors import Conflict, InvalidAgentKey, NotFound, NotPermitted
from journal.operations import operation
from policies import people, solo
from policies.models import Person, ProvisioningToken
from policies.people import build_actor

from . import second_person
from .second_person import ANSWERED_WITHIN

MARK = "csi"
# `last_used_at` is written at most this often.
USE_RESOLUTION = timedelta(minutes=1)
PROVIDER = "provider:"  # begins the id of the provider as the actor of a record


class InvalidProvisioningToken(InvalidAgentKey):
    """The token is missing, wrong, revoked, or not confirmed yet. Nothing was changed.
    An administrator makes one on the page People, Provisioning, and another one
    confirms it."""


@operation(writes="ProvisioningToken", logs="provisioning.token_made")
def make_token(*, reason: str, by: Person) -> str:
    """Make a token that waits for another administrator; return its text, which is not
    stored. Raises NotPermitted, TextMissing, and Conflict in solo mode."""
    people.check_administrator(by)
    if solo.is_solo():
        raise Conflict(
            "This gate runs in solo mode, for one person. Start it without --solo, and"
            " set up provisioning then."
        )
    made = bearer_tokens.create_token(MARK)
    ProvisioningToken.objects.create(
        prefix=made.prefix,
        digest=made.digest,
        reason=second_person.read_reason(reason),
        asked_by=by,
        asked_at=clock.now(),
    )
    _log_token("provisioning.token_made", made.prefix, by)
    return made.text


@operation(writes="ProvisioningToken", logs="provisioning.token_confirmed")
def confirm_token(*, token_id: int, by: Person) -> None:
    """Let the token work from now on. Raises NotPermitted for anybody but another
    administrator, NotFound, and Conflict for a token that does not wait."""
    people.check_administrator(by)
    row = load_token(token_id)
    if why_not := describe_why_no_answer(row, by):
        raise NotPermitted(why_not)
    now = clock.now()
    waiting = ProvisioningToken.objects.filter(
        pk=row.pk,
        confirmed_at__isnull=True,
        ended_at__isnull=True,
        asked_at__gt=now - ANSWERED_WITHIN,
    )
    if not waiting.update(confirmed_at=now, confirmed_by=by):
        raise Conflict(second_person.OVER)
    _log_token("provisioning.token_confirmed", row.prefix, by)


@operation(writes="ProvisioningToken", logs="provisioning.token_revoked")
def revoke_token(*, token_id: int, by: Person) -> None:
    """End a token at once, or refuse one that waits; ending it again changes nothing.
    Raises NotPermitted for anybody but an administrator, and NotFound."""
    people.check_administrator(by)
    row = load_token(token_id)
    alive = ProvisioningToken.objects.filter(pk=row.pk, ended_at__isnull=True)
    if alive.update(ended_at=clock.now(), ended_by=by):
        _log_token("provisioning.token_revoked", row.prefix, by)


def load_token(token_id: int) -> ProvisioningToken:
    """The token. Raises NotFound."""
    row = ProvisioningToken.objects.filter(pk=token_id).first()
    if row is None:
        raise NotFound
    return row


def describe_why_no_answer(row: ProvisioningToken, by: Person) -> str:
    """Why this administrator may not confirm the token; empty when they may."""
    if row.asked_by_id == by.pk:  # guard: provisioning-second-person
        return "You made it. Another administrator must confirm it."
    if not people.is_administrator(row.asked_by):  # guard: provisioning-maker
        return (
            "Whoever made it is no administrator any more. Refuse it, and make another"
            " one."
        )
    return ""


def is_waiting(row: ProvisioningToken, now: datetime) -> bool:
    """Whether another administrator may confirm the token now."""
    unanswered = row.confirmed_at is None and row.ended_at is None
    return unanswered and row.asked_at > now - ANSWERED_WITHIN


def is_valid(row: ProvisioningToken) -> bool:
    """Whether the provider may use the token."""
    return row.confirmed_at is not None and row.ended_at is None


def authenticate_token(text: str) -> ProvisioningToken:
    """The valid token with this text. Raises InvalidProvisioningToken, without telling
    an unknown, a wrong, an unconfirmed and a revoked one apart."""
    prefix, secret = bearer_tokens.parse_token(MARK, text)
    row = ProvisioningToken.objects.filter(prefix=prefix).first()
    if row is None or not bearer_tokens.is_matching_secret(row.digest, secret):
        raise InvalidProvisioningToken
    if not is_valid(row):  # guard: provisioning-token
        raise InvalidProvisioningToken
    now = clock.now()
    if row.last_used_at is None or now - row.last_used_at > USE_RESOLUTION:
        ProvisioningToken.objects.filter(pk=row.pk).update(last_used_at=now)
    return row


def build_provider_actor(token: ProvisioningToken) -> log.Actor:
    """The provider, by its token, as the actor of a log record."""
    return log.Actor("system", f"{PROVIDER}{token.prefix}")


def _log_token(kind: str, prefix: str, by: Person) -> None:
    data = {"prefix": prefix}
    log.append(kind, actor=build_actor(by), at=clock.now(), data=data)
