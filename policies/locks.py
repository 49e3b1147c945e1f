"""The only place that locks for policies: advisory locks, held to the end of the
transaction. In house.md's order they come after Thread and ApprovalRequest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from django.db import connection

from journal import transactions

_TAKE = "SELECT pg_advisory_xact_lock(key) FROM unnest(%s::bigint[]) AS key"


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


def _take(names: Iterable[str]) -> None:
    transactions.require("An advisory lock")
    keys = sorted({_number(name) for name in names})
    if keys:
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, [keys])


def _number(name: str) -> int:
    """PostgreSQL's advisory locks are 64-bit numbers."""
    head = hashlib.sha256(name.encode()).digest()[:8]
    return int.from_bytes(head, "big", signed=True)
