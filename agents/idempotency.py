"""Idempotency keys of agents (docs/invariants.md I23): the same key with the same body
gets the stored answer, the same key with another body is refused.

A proposal that the policy blocked asked nobody and authorised nothing. Its answer holds
as long as the policy and the agent's permissions: once these have changed, the same
call is judged again. So is every call that was blocked because something could not be
read at that moment. Every other answer is replayed for good.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from journal import canonical, restore_epochs, writes
from journal.errors import IdempotencyKeyReused, InProgress
from journal.prepared_queries import Parameter, PreparedQuery
from journal.statements import Statement
from policies import active
from policies.models import PolicyVersion

from . import locks
from .models import Agent, IdempotencyKey

MAX_KEY_LENGTH = 255
_STORE_ANSWER = (
    (
        "answer_stored",
        """
        UPDATE agents_idempotencykey
        SET status = %(status)s, body = %(body)s, proposal = %(proposal)s,
            created_at = CASE WHEN status IS NULL THEN created_at
                              ELSE statement_timestamp() END,
            refused_under = %(refused_under)s
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


# Rules that block because the tool's service did not say what they need to know.
_UNREAD = frozenset({"key.unresolved", "amount.unresolved", "policy.error"})


def describe_refusal(agent: Agent, policy: PolicyVersion | None, rule: str) -> str:
    """Return what the refusal by this rule depends on; "" without a rule."""
    if not rule:
        return ""
    return rule if rule in _UNREAD else compute_permissions(agent, policy)


def compute_permissions(agent: Agent, policy: PolicyVersion | None) -> str:
    """Return the digest of what lets an agent act: the policy, and what the agent's
    owner and administrators have allowed to it."""
    policy_id = policy.pk if policy else 0
    permissions = [sorted(agent.tools), agent.risk_ceiling, agent.unattended]
    return canonical.digest(canonical.encode([policy_id, *permissions]))


_USED_KEY = PreparedQuery(
    lambda: IdempotencyKey.objects.filter(
        agent_id=Parameter("agent"), key=Parameter("key")
    )
)


def find_stored_answer(agent: Agent, key: CallKey) -> StoredAnswer | None:
    """Return the stored answer of a used key. None for an unused one, and for one whose
    call was blocked by what has changed since, or could not be read. Raises
    IdempotencyKeyReused when the key was used with another body, InProgress when the
    first call has not stored its answer yet."""
    row = _USED_KEY.fetch_first(agent=agent.pk, key=key.text)
    return None if row is None else _read_answer(agent, key, row)


def _read_answer(
    agent: Agent, key: CallKey, row: IdempotencyKey
) -> StoredAnswer | None:
    if row.fingerprint != key.fingerprint:  # guard: key-body
        raise IdempotencyKeyReused
    if row.status is None or row.body is None:
        raise InProgress
    if row.refused_under:
        now = compute_permissions(agent, active.find_active_policy())
        if row.refused_under != now:
            return None
    return StoredAnswer(row.status, row.body, row.proposal, replayed=True)


def claim_key(agent: Agent, key: CallKey) -> StoredAnswer | None:
    """Insert the key; None when this transaction is the first to use it, otherwise the
    answer of the call that was. When another transaction has inserted the same key and
    not committed, this statement waits for it, so two calls can never both be first.

    None also for a call that is to be judged again, see `find_stored_answer`. Its row
    is then locked: a rival waits, and gets the answer of this transaction.

    Caller holds a transaction. Raises what `find_stored_answer` raises, and
    DatabaseRestored for an answer of a restored database."""
    if _CLAIM.execute(agent=agent.pk, key=key.text, fingerprint=key.fingerprint) == 1:
        return None
    restore_epochs.check_not_restored()
    stored = find_stored_answer(agent, key)
    if stored is not None:
        return stored
    row = locks.lock_key(agent, key.text)
    if row is None:
        raise InProgress
    return _read_answer(agent, key, row)  # guard: refusal-once


def store_answer(
    agent: Agent,
    key: CallKey,
    *,
    status: int,
    body: dict[str, Any],
    proposal: str,
    refused_under: str = "",
) -> StoredAnswer:
    """Store and return the answer of a call. `refused_under` is what
    `describe_refusal` returned for a call that the policy blocked. Caller holds the
    transaction that claimed the key."""
    writes.execute_write(
        _STORE_ANSWER,
        {
            "agent": agent.pk,
            "key": key.text,
            "status": status,
            "body": json.dumps(body, ensure_ascii=False),
            "proposal": proposal,
            "refused_under": refused_under,
        },
    )
    return StoredAnswer(status, body, proposal)
