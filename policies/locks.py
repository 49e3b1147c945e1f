"""The only place that locks for policies: advisory locks, held to the end of the
transaction. In house.md's order they come after Thread and ApprovalRequest. That of a
person's mails is held beside all of them, by the connection."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import connection

from journal import transactions

_TAKE = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key"

_TAKE_SHARED = _TAKE.replace("xact_lock", "xact_lock_shared")


def measures(pairs: Iterable[tuple[str, str]]) -> None:
    """Lock the sums of these (measure, key) pairs, always in the same order, so that
    two proposals cannot both be the first. Caller holds a transaction."""
    _take(f"measure|{measure}|{key}" for measure, key in pairs)


def policy_versions() -> None:
    """One administrator at a time saves or activates. Caller holds a transaction."""
    _take(["policy versions"])


def leases(person: str) -> None:
    """What one person holds, named by their public id. Caller holds a transaction."""
    _take([f"leases|{person}"])


def alarm(about: str) -> None:
    """One raising of an alarm at a time about a thing. Caller holds a transaction."""
    _take([f"alarm|{about}"])


def deadlines() -> None:
    """Nobody expires while it is changed what stands still. Caller holds a
    transaction, and takes this before any row."""
    _take(["deadlines"])


def deadlines_shared() -> None:
    """Nothing begins or ends to stand still while what is over expires. Caller holds a
    transaction, and takes this before any row."""
    _take(["deadlines"], _TAKE_SHARED)


@contextmanager
def mails(person: str) -> Iterator[None]:
    """One mail of what was gathered for a person, named by their public id, is written
    at a time. Held by the connection, for a mail server takes longer than a transaction
    may: caller holds none. Raises OperationalError when another has it too long."""
    key = [_number(f"mails|{person}")]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", key)
        try:
            yield
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", key)


def _take(names: Iterable[str], statement: str = "") -> None:
    transactions.require("An advisory lock")
    keys = sorted({_number(name) for name in names})
    if keys:
        with connection.cursor() as cursor:
            cursor.execute(statement or _TAKE, [keys])


def _number(name: str) -> int:
    """PostgreSQL's advisory locks are 64-bit numbers."""
    head = hashlib.sha256(name.encode()).digest()[:8]
    return int.from_bytes(head, "big", signed=True)
