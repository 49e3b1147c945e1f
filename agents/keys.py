"""Agent keys: bearer secrets that begin with `cs`. Every call reads the key's row, so a
revocation takes effect on the next call."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Q

from journal import bearer_tokens, clock, log
from journal.clock import ClockTimestamp
from journal.errors import InvalidAgentKey
from journal.operations import operation
from journal.prepared_queries import Parameter, PreparedQuery
from policies import people
from policies.models import Person
from policies.people import build_actor

from .models import Agent, AgentKey

MARK = "cs"
# `last_used_at` is written at most this often: a write on every call would double the
# cost of a call.
USE_RESOLUTION = timedelta(minutes=1)


class AgentScope(StrEnum):
    """What a key permits: `propose` covers every call that writes, `read` every GET."""

    PROPOSE = "propose"
    READ = "read"


def create_key() -> str:
    """The text of a new key."""
    return bearer_tokens.create_token(MARK).text


@operation(writes="AgentKey", logs="agent.key_issued", after="wake-up")
def issue_key(
    *,
    agent: Agent,
    by: Person,
    expires_at: datetime | None = None,
    scopes: tuple[AgentScope, ...] = tuple(AgentScope),
    text: str = "",
) -> str:
    """Create a key of an agent and return its text, which is not stored; `text` is
    given where it was created before. The agent's other keys remain valid. Raises
    NotPermitted for anyone but an administrator or the agent's owner, and ValueError
    for a text that is no key."""
    people.check_owner_or_administrator(agent.owner, by)
    minted = bearer_tokens.read_token(MARK, text or create_key())
    AgentKey.objects.create(
        agent=agent,
        prefix=minted.prefix,
        digest=minted.digest,
        scopes=[scope.value for scope in scopes],
        expires_at=expires_at,
    )
    _log_key_change("agent.key_issued", agent, minted.prefix, by)
    return minted.text


@operation(writes="AgentKey", logs="agent.key_revoked", after="wake-up")
def revoke_key(*, key: AgentKey, by: Person) -> None:
    """Revoke a key now; revoking it again changes nothing. Raises NotPermitted for
    anyone but an administrator or the agent's owner."""
    people.check_owner_or_administrator(key.agent.owner, by)
    now = clock.now()
    unrevoked = AgentKey.objects.filter(pk=key.pk, revoked_at__isnull=True)
    if unrevoked.update(revoked_at=now):
        _log_key_change("agent.key_revoked", key.agent, key.prefix, by)


_LIVE_KEY = PreparedQuery(
    lambda: (
        AgentKey.objects.select_related("agent__owner")
        .annotate(checked_at=ClockTimestamp())
        .filter(
            Q(expires_at__isnull=True) | Q(expires_at__gt=ClockTimestamp()),
            prefix=Parameter("prefix"),
            revoked_at__isnull=True,
        )
    )
)


def authenticate_key(text: str) -> AgentKey:
    """Return the valid key with its agent. Raises InvalidAgentKey, without telling
    an unknown, a wrong, an expired and a revoked key apart. One statement."""
    prefix, secret = bearer_tokens.parse_token(MARK, text)
    key = _LIVE_KEY.fetch_first(prefix=prefix)
    if key is None or not bearer_tokens.is_matching_secret(key.digest, secret):
        raise InvalidAgentKey
    now = key.checked_at
    if key.last_used_at is None or now - key.last_used_at > USE_RESOLUTION:
        AgentKey.objects.filter(pk=key.pk).update(last_used_at=now)
    return key


def _log_key_change(kind: str, agent: Agent, prefix: str, by: Person) -> None:
    log.append(
        kind,
        actor=build_actor(by),
        at=clock.now(),
        agent=agent.slug,
        data={"agent": agent.slug, "prefix": prefix},
    )
