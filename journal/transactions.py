"""Steps never open a transaction; they require the caller's (house.md). And when all
that were open at one moment are over, nothing can appear that had begun before it."""

from __future__ import annotations

from django.db import connection
from django.db.transaction import TransactionManagementError


def require(step: str) -> None:
    """Raises `TransactionManagementError` outside a transaction: a bug, not a refusal.

    Without one, what the step writes and what caused it could come apart.
    """
    if not connection.in_atomic_block:
        raise TransactionManagementError(f"{step} needs its caller's transaction.")


def horizon() -> int:
    """This moment: whatever writes and is open now has a number below it."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return int(cursor.fetchone()[0])


def are_over(before: int) -> bool:
    """Whether every other transaction below that number has ended, so that all it
    wrote can be read. Those of other databases on the server count as well."""
    with connection.cursor() as cursor:
        cursor.execute(_ARE_OVER, [str(before)])
        return bool(cursor.fetchone()[0])


# Our own, where a test is one, must not be waited for.
_ARE_OVER = """
SELECT pg_snapshot_xmin(pg_current_snapshot())
       >= coalesce(least(given.mark, pg_current_xact_id_if_assigned()), given.mark)
FROM (SELECT %s::xid8 AS mark) AS given
"""
