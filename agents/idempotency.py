"""One answer a key: same key and body replays it, another body is refused (I23)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection

from journal import canonical
from journal.errors import InProgress, KeyReused

from .models import Agent, IdempotencyKey

LONGEST_KEY = 255


@dataclass(frozen=True, slots=True)
class Stored:
    """What the key was answered with the first time."""

    status: int
    body: dict[str, Any]
    proposal: str
    replayed: bool = False  # by a later call, or one that lost the race to be first


def fingerprint(method: str, path: str, body: Any) -> str:
    """What must be the same when a key is used again."""
    return canonical.digest(canonical.encode([method, path, body]))


def replay(agent: Agent, key: str, print_: str) -> Stored | None:
    """The stored answer of a used key, else None.

    Raises KeyReused when the key stands for another body, InProgress when its answer
    is not there yet.
    """
    row = IdempotencyKey.objects.filter(agent=agent, key=key).first()
    if row is None:
        return None
    if row.fingerprint != print_:  # guard: key-body
        raise KeyReused
    if row.status is None or row.body is None:
        raise InProgress
    return Stored(row.status, row.body, row.proposal, replayed=True)


def take(agent: Agent, key: str, print_: str) -> bool:
    """Whether this transaction is the first to use the key.

    A concurrent first use makes this statement wait for its commit, so that there is
    never a moment in which both believe to be first. Caller holds a transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO agents_idempotencykey (agent_id, key, fingerprint, proposal)"
            " VALUES (%s, %s, %s, '') ON CONFLICT (agent_id, key) DO NOTHING",
            [agent.pk, key, print_],
        )
        return bool(cursor.rowcount == 1)


def store(
    agent: Agent, key: str, *, status: int, body: Mapping[str, Any], proposal: str
) -> None:
    """Keep the answer in the transaction that made it."""
    IdempotencyKey.objects.filter(agent=agent, key=key).update(
        status=status, body=dict(body), proposal=proposal
    )
