"""Forgetting what was only needed for a while, a piece at a time. Never the log."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from structlog.stdlib import get_logger

CHUNK = 2000
PIECES = 20  # of one sweep, so that it stays within a task's time limit

logger = get_logger(__name__)


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


def pieces(forget: Callable[[], int], *, whole: int = CHUNK) -> int:
    """Forget one piece after the other while it is a whole one; how many. What is left
    after `PIECES` is said in the log of the process, and goes with the next sweep."""
    gone = 0
    for _ in range(PIECES):
        piece = forget()
        gone += piece
        if piece < whole:
            return gone
    logger.warning("retention.behind", what=getattr(forget, "__name__", str(forget)))
    return gone
