"""The sweep of the outbox: what is due is sent once more.

It remembers piece by piece what it sent, so that one that is cut off costs a piece, and
sends no more than a queue has room for, so that a backlog of one kind of work neither
fills the broker nor hides the promises behind it.

Forgetting what was only needed for a while, a piece at a time. Never the log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import connection
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Greatest, Least, Now
from structlog.stdlib import get_logger

from . import dispatch, failpoints, outbox
from .models import OutboxMessage

PIECE = 50
LONGEST_WAIT = timedelta(seconds=60)

logger = get_logger(__name__)


def sweep() -> int:
    """Send what is due, oldest first, as far as each queue has room; how many the
    broker took. The first that it does not take ends the sweep."""
    tasks = {task for route in settings.OUTBOX_ROUTES.values() for task in route}
    sent = 0
    for together in dispatch.by_queue(sorted(tasks)):
        given, took_all = _fill(together)
        sent += given
        if not took_all:
            break
    return sent


def _fill(tasks: Sequence[str]) -> tuple[int, bool]:
    """Send what is due for the tasks of one queue; how many the broker took, and
    whether these were all it was given."""
    try:
        room = dispatch.room(tasks[0])
    except Exception as error:  # whatever a broker's client raises
        logger.warning("outbox.sweep_failed", error=type(error).__name__)
        return 0, False
    sent = 0
    while piece := _due(tasks, min(PIECE, room - sent)):
        taken = outbox.send(piece)
        _move(piece[:taken])
        sent += taken
        if taken < len(piece):
            return sent, False
    return sent, True


def _due(tasks: Sequence[str], most: int) -> list[OutboxMessage]:
    due = OutboxMessage.objects.filter(outbox.free(), task__in=tasks, due_at__lte=Now())
    # All that sending reads: a column left out here costs a query a message.
    return list(due.only("pk", "task", "subject").order_by("due_at")[:most])


def _move(sent: Sequence[OutboxMessage]) -> None:
    """They are due again after as long as they have waited, from 5 s to a minute."""
    if not sent:
        return
    failpoints.point("swept_unmoved")
    age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
    wait = Least(Greatest(age, outbox.span(outbox.HEAD_START)), LONGEST_WAIT)
    mine = OutboxMessage.objects.filter(outbox.free(), pk__in=[one.pk for one in sent])
    mine.update(due_at=Now() + wait)


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
