"""Forgetting what was only needed for a while, a piece at a time. Never the log."""

from __future__ import annotations

from django.db import connection

CHUNK = 2000


def head(table: str, *, made: str, days: int, over: str = "true") -> int:
    """Delete what was made so many days ago from the oldest rows; how many.

    Ids grow with time, so only the first of them are looked at and the cost is the same
    however many there are. `over` is SQL, of ours: rows it does not hold for stay.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"DELETE FROM {table} WHERE id IN ("  # noqa: S608 our names only
            f"SELECT id FROM (SELECT id, {made} AS made, {over} AS over FROM {table}"
            " ORDER BY id LIMIT %s) AS oldest"
            " WHERE over AND made < clock_timestamp() - make_interval(days => %s))",
            [CHUNK, days],
        )
        return int(cursor.rowcount)
