"""Forgetting what was only needed for a while, a piece at a time. Never the log."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from django.db import connection
from structlog.stdlib import get_logger

CHUNK = 2000
PIECES = 20  # of one sweep, so that it stays within a task's time limit

_STATEMENT = """
WITH piece AS (
    SELECT id, {over} AS over,
           {made} < clock_timestamp() - make_interval(days => %s) AS old
    FROM {table} WHERE id > %s ORDER BY id LIMIT %s
), gone AS (
    DELETE FROM {table} WHERE id IN (SELECT id FROM piece WHERE over AND old)
    RETURNING id
)
SELECT (SELECT count(*) FROM gone),
       count(*) FILTER (WHERE old IS NOT FALSE), coalesce(max(id), 0) FROM piece
"""

logger = get_logger(__name__)


def head(table: str, *, made: str, days: int, over: str = "true") -> int:
    """Delete what was made so many days ago, from the oldest rows on; how many.

    Ids grow with time, so it goes by them, a piece after the other, until one holds
    what is younger: the cost is the same however many there are. `over` and `made` are
    SQL, of ours: rows that the first does not hold for stay, and hold up nothing behind
    them; nor does what was not made yet.
    """
    gone = after = 0
    for _ in range(PIECES):
        piece = _piece(table, made, days, over, after)
        gone += piece.gone
        if piece.old < CHUNK:
            return gone
        after = piece.last
    logger.warning("retention.behind", what=table)
    return gone


class _Piece(NamedTuple):
    gone: int
    old: int  # or not made yet
    last: int


def _piece(table: str, made: str, days: int, over: str, after: int) -> _Piece:
    with connection.cursor() as cursor:
        statement = _STATEMENT.format(table=table, made=made, over=over)
        cursor.execute(statement, [days, after, CHUNK])
        return _Piece(*cursor.fetchone())


def pieces(forget: Callable[[], int], *, whole: int) -> int:
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
