"""Idempotency keys of agents (docs/invariants.md I23): the same key with the same body
gets the stored answer, the same key with another body is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from journal import canonical, restore_epochs, writes
from journal.errors import IdempotencyKeyReused, InProgress
from journal.prepared_queries import Parameter, PreparedQuery
from journal.statements import Statement

from .models import Agent, IdempotencyKey

MAX_KEY_LENGTH = 255
_STORE_ANSWER = (
    (
        "answer_stored",
        """
        UPDATE agents_idempotencykey
        SET status = %(status)s, body = %(body)s, proposal = %(proposal)s
        WHERE agent_id = %(agent)s AND key = %(key)s RETURNING agent_id
        """,
    ),
)
_CLAIM = Statement("""
INSERT INTO agents_idempotencykey (agent_id, key, fingerprint, proposal)
VALUES (%(agent)s, %(key)s, %(fingerprint)s, '') ON CONFLICT (agent_id, key) DO NOTHING
""")


@dataclass(frozen=True, slots=True)
class CallKey:
    """The idempotency key of one call, and the digest of method, path and body."""

    text: str
    fingerprint: str


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


_USED_KEY = PreparedQuery(
    lambda: IdempotencyKey.objects.filter(
        agent_id=Parameter("agent"), key=Parameter("key")
    )
)


def find_stored_answer(agent: Agent, key: CallKey) -> StoredAnswer | None:
    """Return the stored answer of a used key, or None for an unused one. Raises
    IdempotencyKeyReused when the key was used with another body, InProgress when the
    first call has not stored its answer yet."""
    row = _USED_KEY.fetch_first(agent=agent.pk, key=key.text)
    if row is None:
        return None
    if row.fingerprint != key.fingerprint:  # guard: key-body
        raise IdempotencyKeyReused
    if row.status is None or row.body is None:
        raise InProgress
    return StoredAnswer(row.status, row.body, row.proposal, replayed=True)


def claim_key(agent: Agent, key: CallKey) -> StoredAnswer | None:
    """Insert the key; None when this transaction is the first to use it, otherwise the
    answer of the call that was. When another transaction has inserted the same key and
    not committed, this statement waits for it, so two calls can never both be first.
    Caller holds a transaction. Raises what `find_stored_answer` raises, and
    DatabaseRestored for an answer of a restored database."""
    if _CLAIM.execute(agent=agent.pk, key=key.text, fingerprint=key.fingerprint) == 1:
        return None
    restore_epochs.check_not_restored()
    stored = find_stored_answer(agent, key)
    if stored is None:
        raise InProgress
    return stored


def store_answer(
    agent: Agent, key: CallKey, *, status: int, body: dict[str, Any], proposal: str
) -> StoredAnswer:
    """Store and return the answer of a call. Caller holds the transaction that claimed
    the key."""
    writes.execute_write(
        _STORE_ANSWER,
        {
            "agent": agent.pk,
            "key": key.text,
            "status": status,
            "body": json.dumps(body, ensure_ascii=False),
            "proposal": proposal,
        },
    )
    return StoredAnswer(status, body, proposal)
