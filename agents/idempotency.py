"""Idempotency keys of agents (invariant I23): the same key with the same body gets the
stored answer, the same key with another body is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from journal import canonical
from journal.errors import IdempotencyKeyReused, InProgress

from .models import Agent, IdempotencyKey

MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """The answer to the first call with a key. `status` is an HTTP status, `proposal`
    the id of the proposal that the call created or changed."""

    status: int
    body: dict[str, Any]
    proposal: str
    replayed: bool = False  # given to a later call, or to one that lost the race


def compute_fingerprint(method: str, path: str, body: Any) -> str:
    """Return the digest of what must be the same when a key is used again."""
    return canonical.digest(canonical.encode([method, path, body]))


def find_stored_answer(agent: Agent, key: str, print_: str) -> StoredAnswer | None:
    """Return the stored answer of a used key, or None for an unused one. `print_` is
    the call's fingerprint.

    Raises KeyReused when the key was used with another body, InProgress when the first
    call has not stored its answer yet.
    """
    row = IdempotencyKey.objects.filter(agent=agent, key=key).first()
    if row is None:
        return None
    if row.fingerprint != print_:  # guard: key-body
        raise IdempotencyKeyReused
    if row.status is None or row.body is None:
        raise InProgress
    return StoredAnswer(row.status, row.body, row.proposal, replayed=True)


def claim_key(agent: Agent, key: str, print_: str) -> bool:
    """Insert the key; return whether this transaction is the first to use it.

    When another transaction has inserted the same key and not committed, this statement
    waits for it, so two calls can never both be first. Caller holds a transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO agents_idempotencykey (agent_id, key, fingerprint, proposal)"
            " VALUES (%s, %s, %s, '') ON CONFLICT (agent_id, key) DO NOTHING",
            [agent.pk, key, print_],
        )
        return bool(cursor.rowcount == 1)


def store_answer(
    agent: Agent, key: str, *, status: int, body: Mapping[str, Any], proposal: str
) -> None:
    """Store the answer of a call. Caller holds the transaction that claimed the key."""
    IdempotencyKey.objects.filter(agent=agent, key=key).update(
        status=status, body=dict(body), proposal=proposal
    )
