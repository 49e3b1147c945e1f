"""Checks on database transactions.

Steps never open a transaction; they require the caller's, so that a change and its log
record commit together. A sweep can also wait until every transaction that was open at
one moment has ended: from then on, no row written before that moment can still become
visible.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from django.db import connection, transaction
from django.db.transaction import TransactionManagementError


def require_transaction(step: str) -> None:
    """Raise `TransactionManagementError` outside a transaction: a bug, not a refusal.

    Without one, the step's rows could be committed without the change that caused them.
    `step` begins the message, for example "Writing the log".
    """
    if not connection.in_atomic_block:
        raise TransactionManagementError(f"{step} needs its caller's transaction.")


def open_savepoint(step: str) -> AbstractContextManager[None]:
    """A savepoint inside the caller's transaction: an exception undoes what is written
    in it, and the transaction goes on. `step` is as for `require_transaction`."""
    require_transaction(step)
    return transaction.atomic(savepoint=True)


def read_xid_horizon() -> int:
    """A transaction id above every transaction that is open now and has written."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        return int(cursor.fetchone()[0])


def have_transactions_ended(before: int) -> bool:
    """Whether every other transaction with an id below `before` has ended, so that
    everything it committed can be read. Transactions of other databases on the same
    server count as well."""
    with connection.cursor() as cursor:
        cursor.execute(_HAVE_ENDED, [str(before)])
        return bool(cursor.fetchone()[0])


# The current transaction is left out: a test runs inside one and would wait for itself.
_HAVE_ENDED = """
SELECT pg_snapshot_xmin(pg_current_snapshot())
       >= coalesce(least(given.mark, pg_current_xact_id_if_assigned()), given.mark)
FROM (SELECT %s::xid8 AS mark) AS given
"""
