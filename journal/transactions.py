"""Steps never open a transaction; they require the caller's (house.md)."""

from __future__ import annotations

from django.db import connection
from django.db.transaction import TransactionManagementError


def require(step: str) -> None:
    """Raises `TransactionManagementError` outside a transaction: a bug, not a refusal.

    Without one, what the step writes and what caused it could come apart.
    """
    if not connection.in_atomic_block:
        raise TransactionManagementError(f"{step} needs its caller's transaction.")
