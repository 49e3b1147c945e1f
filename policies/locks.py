"""All locks of this package: advisory locks, held until the end of the transaction.

The whole order stands in reviews/locks.py: they come after Thread and ApprovalRequest.
Only the lock on a person's mails is held by the connection, outside of any transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import connection

from journal import transactions
from journal.statements import Statement

_TAKE = Statement(
    "SELECT pg_advisory_xact_lock(key) FROM unnest(%(keys)s::bigint[]) AS key"
)
_TAKE_SHARED = Statement(
    "SELECT pg_advisory_xact_lock_shared(key) FROM unnest(%(keys)s::bigint[]) AS key"
)


def lock_measures(pairs: Iterable[tuple[str, str]]) -> None:
    """Lock the sums of these (measure, key) pairs, always in the same order, so that
    two concurrent proposals cannot both miss each other in a sum. Caller holds a
    transaction."""
    _take_locks(f"measure|{measure}|{key}" for measure, key in pairs)


def lock_policy_versions() -> None:
    """Lock the policy versions: one administrator at a time saves or activates one.
    Caller holds a transaction."""
    _take_locks(["policy versions"])


def lock_holds(person: str) -> None:
    """Lock the holds of one person, given by public id. Caller holds a transaction."""
    _take_locks([f"holds|{person}"])


def lock_alarm(about: str) -> None:
    """Lock the alarms about one subject: one transaction at a time raises one. Caller
    holds a transaction."""
    _take_locks([f"alarm|{about}"])


def lock_standing_grants(agent: str, thread: str, tool: str) -> None:
    """Lock the standing grants of one run and tool: one transaction at a time issues
    one. Caller holds a transaction."""
    _take_locks([f"standing grants|{agent}|{thread}|{tool}"])


def lock_on_call(queue: int) -> None:
    """Lock the rota and the drills of one queue: one person at a time plans a shift or
    starts a drill. Caller holds a transaction."""
    _take_locks([f"on call|{queue}"])


def lock_preset(queue: int) -> None:
    """Lock what the decision panel offers in one queue: one administrator at a time
    changes it. Caller holds a transaction."""
    _take_locks([f"preset|{queue}"])


def lock_deadlines() -> None:
    """Lock all deadlines exclusively, to start or end an incident during which they
    stand still: no request expires meanwhile. Caller holds a transaction, and no row
    lock yet."""
    _take_locks(["deadlines"])


def lock_deadlines_shared() -> None:
    """Lock all deadlines shared, to expire requests: no incident starts or ends
    meanwhile. Caller holds a transaction, and no row lock yet."""
    _take_locks(["deadlines"], _TAKE_SHARED)


@contextmanager
def lock_mails(person: str) -> Iterator[None]:
    """Lock the digest mails to one person, given by public id: one is written at a
    time.

    The connection holds the lock, because a mail server can take longer than a
    transaction may last. Caller holds no transaction. Raises OperationalError when
    another process holds the lock for too long.
    """
    key = [_compute_lock_key(f"mails|{person}")]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", key)
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", key)


def _take_locks(names: Iterable[str], statement: Statement = _TAKE) -> None:
    transactions.require_transaction("An advisory lock")
    keys = sorted({_compute_lock_key(name) for name in names})
    if keys:
        statement.execute(keys=keys)


def _compute_lock_key(name: str) -> int:
    """The signed 64-bit number by which PostgreSQL knows an advisory lock."""
    head = hashlib.sha256(name.encode()).digest()[:8]
    return int.from_bytes(head, "big", signed=True)
