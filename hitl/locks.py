"""The locks that this package takes."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet


def lock_free_rows(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Lock those of these rows that nobody else holds, and leave out the others. Caller
    holds a transaction."""
    return rows.select_for_update(skip_locked=True, of=("self",), no_key=True)
