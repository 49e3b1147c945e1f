"""The sweep that sends due outbox messages again, the deletion of old rows, and what
keeps one row that fails from stopping the others of any sweep.

The sweep saves its progress in chunks, so that an interrupted one repeats at most one
chunk. It sends no more than a queue has room for, so that a backlog of one kind of work
neither fills the broker nor delays the messages behind it. Old rows, never those of the
log, are deleted in chunks as well.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import NamedTuple, TypeVar

from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import connection
from django.db.models import DurationField, ExpressionWrapper, F
from django.db.models.functions import Greatest, Least, Now
from structlog.stdlib import get_logger

from . import dispatch, failpoints, outbox, transactions
from .errors import DatabaseRestored
from .models import OutboxMessage

SEND_CHUNK = 50
LONGEST_WAIT = timedelta(seconds=60)

logger = get_logger(__name__)


def send_due_messages() -> int:
    """Send the due messages, oldest first, until each queue is full; return how many
    the broker accepted. The sweep ends at the first that the broker does not accept.
    Caller holds no transaction."""
    tasks = {task for route in settings.OUTBOX_ROUTES.values() for task in route}
    sent = 0
    for together in dispatch.group_by_queue(sorted(tasks)):
        given, took_all = _send_for_queue(together)
        sent += given
        if not took_all:
            break
    return sent


def _send_for_queue(tasks: Sequence[str]) -> tuple[int, bool]:
    """Send the due messages for the tasks of one queue. Returns how many the broker
    accepted, and whether it accepted all that it was sent."""
    try:
        room = dispatch.count_free_slots(tasks[0])
    except Exception as error:  # any exception of the broker's client
        logger.warning("outbox.sweep_failed", error=type(error).__name__)
        return 0, False
    sent = 0
    while piece := _list_due(tasks, min(SEND_CHUNK, room - sent)):
        taken = outbox.nudge_consumers(piece)
        _postpone_sent(piece[:taken])
        sent += taken
        if taken < len(piece):
            return sent, False
    return sent, True


def _list_due(tasks: Sequence[str], most: int) -> list[OutboxMessage]:
    due = OutboxMessage.objects.filter(
        outbox.build_claimable_filter(), task__in=tasks, due_at__lte=Now()
    )
    # The columns that sending reads: leaving one out costs a query per message.
    return list(due.only("pk", "task", "subject").order_by("due_at")[:most])


def _postpone_sent(sent: Sequence[OutboxMessage]) -> None:
    """Make these messages due again after as long as they have existed, but after at
    least 5 s and at most a minute."""
    if not sent:
        return
    failpoints.point("swept_unmoved")
    age = ExpressionWrapper(Now() - F("created_at"), output_field=DurationField())
    wait = Least(Greatest(age, outbox.build_interval(outbox.HEAD_START)), LONGEST_WAIT)
    claimable = OutboxMessage.objects.filter(
        outbox.build_claimable_filter(), pk__in=[message.pk for message in sent]
    )
    claimable.update(due_at=Now() + wait)


DELETE_CHUNK = 2000
MAX_CHUNKS = 20  # chunks in one sweep, so that it stays within a task's time limit

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


def delete_old_rows(table: str, *, made: str, days: int, over: str = "true") -> int:
    """Delete rows made more than `days` ago, oldest first; return how many.

    Ids grow with time, so it goes through the rows by id in chunks, until a chunk
    contains a younger row. The cost does not depend on the size of the table. `made`
    and `over` are SQL expressions and must never come from input. `made` is the time to
    compare; rows for which it is null stay. `over` selects rows that may be deleted.
    Rows that stay do not stop the deletion of the rows after them.
    """
    gone = after = 0
    for _ in range(MAX_CHUNKS):
        piece = _delete_chunk(table, made, days, over, after)
        gone += piece.gone
        if piece.old < DELETE_CHUNK:
            return gone
        after = piece.last
    logger.warning("retention.behind", what=table)
    return gone


class _DeletedChunk(NamedTuple):
    gone: int
    old: int  # rows made long ago, or for which `made` is null
    last: int


def _delete_chunk(
    table: str, made: str, days: int, over: str, after: int
) -> _DeletedChunk:
    with connection.cursor() as cursor:
        statement = _STATEMENT.format(table=table, made=made, over=over)
        cursor.execute(statement, [days, after, DELETE_CHUNK])
        return _DeletedChunk(*cursor.fetchone())


def delete_in_chunks(forget: Callable[[], int], *, whole: int) -> int:
    """Call `forget`, which deletes one chunk and returns its size, until it returns
    less than `whole`; return how many rows it deleted. After `MAX_CHUNKS` calls it logs
    a warning and leaves the rest to the next sweep."""
    gone = 0
    for _ in range(MAX_CHUNKS):
        piece = forget()
        gone += piece
        if piece < whole:
            return gone
    logger.warning("retention.behind", what=getattr(forget, "__name__", str(forget)))
    return gone


R = TypeVar("R")


def run_each(
    operation: Callable[[R], int | None],
    subjects: Iterable[R],
    *,
    must_repeat: bool = False,
) -> int:
    """Call an operation, which opens its own transaction, for each of these subjects;
    return the sum of what it returns. One that fails is logged and left to the next
    sweep. With `must_repeat` the last error is raised after the others were handled,
    for a task that is repeated only if it fails. Raises what stops the whole sweep: a
    time limit, a restored database, a lost connection."""
    total, failure = 0, None
    for subject in subjects:
        try:
            total += operation(subject) or 0
            _forget_failure(operation, subject)
        except Exception as error:  # whatever is wrong with this row
            _log_failure(operation, subject, error)
            failure = error
    if failure is not None and must_repeat:
        raise failure
    return total


def apply_to_all(operation: Callable[[list[R]], object], rows: Sequence[R]) -> list[R]:
    """Call a step of an operation with all of these locked rows together, and if that
    fails, with each alone. What a failing call wrote is undone, and its row is logged
    and left to the next sweep. Returns the other rows. Raises what stops the whole
    sweep. Caller holds a transaction."""
    before = [dict(vars(row)) for row in rows]
    try:
        with transactions.open_savepoint("A sweep"):
            operation(list(rows))
        for row in rows:
            _forget_failure(operation, row)
        return list(rows)
    except Exception as error:  # of any of the rows
        if len(rows) == 1:
            _log_failure(operation, rows[0], error)
            return []
        _reraise_if_fatal(error)
    for row, values in zip(rows, before, strict=True):
        vars(row).clear()
        vars(row).update(values)
    return [done for row in rows for done in apply_to_all(operation, [row])]


def apply_in_pieces(operation: Callable[[int], int], limit: int) -> int:
    """Call a statement that handles the next rows of a strict order, at most as many as
    it is given, and returns how many. If it fails, it is tried with fewer rows, so that
    all rows before the one that fails are handled; that one is named in the log and
    waits with those behind it, because none may overtake another. Returns how many rows
    were handled. Caller holds a transaction."""
    done, size = 0, limit
    while done < limit:
        asked = min(size, limit - done)
        try:
            with transactions.open_savepoint("A sweep"):
                handled = operation(asked)
        except Exception as error:  # of any of the rows
            _reraise_if_fatal(error)
            if size == 1:
                _log_failure(operation, "the next in order", error)
                break
            size //= 2
            continue
        done += handled
        if handled < asked:
            break
    return done


# What was logged of which row, the newest last: a sweep that runs every few seconds
# names a row once in each process, and again when the row fails in another way.
_logged: OrderedDict[tuple[str, str], str] = OrderedDict()
_MOST_LOGGED = 1000


def _log_failure(
    operation: Callable[..., object], subject: object, error: Exception
) -> None:
    _reraise_if_fatal(error)
    key, failure = _build_failure_key(operation, subject), repr(error)
    if _logged.get(key) == failure:
        return
    _logged[key] = failure
    if len(_logged) > _MOST_LOGGED:
        _logged.popitem(last=False)
    name, row = key
    logger.error("sweep.row_failed", operation=name, row=row, exc_info=error)


def _forget_failure(operation: Callable[..., object], subject: object) -> None:
    if _logged:
        _logged.pop(_build_failure_key(operation, subject), None)


def _build_failure_key(
    operation: Callable[..., object], subject: object
) -> tuple[str, str]:
    name = getattr(operation, "__qualname__", repr(operation))
    return name, str(getattr(subject, "pk", subject))


def _reraise_if_fatal(error: Exception) -> None:
    """Raise an error that the next row would meet as well."""
    if isinstance(error, SoftTimeLimitExceeded | DatabaseRestored):
        raise error
    if connection.connection is None or connection.connection.closed:
        raise error
