"""Promises to notify or resume, written with the change that caused them.

The broker is only a nudge: it may lose, repeat, delay or forge. What makes sure that
the work is done is the row, the sweep (`resending`), and the claim that lets one
consumer work at a time (gate.md section 7).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial

import celery
from django.conf import settings
from django.db import connection, transaction
from django.db.models import DurationField, F, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Now
from psycopg.types.json import Jsonb
from structlog.stdlib import get_logger

from . import dispatch, failpoints, transactions
from .bulk_insert import insert
from .models import OutboxMessage

Fact = str | int

# Seconds. The first nudge has the head start before the sweep sends again.
HEAD_START = 5
SHORTEST_REST, LONGEST_REST = 5, 600
FEW = 50  # promises of one commit whose nudges need no look at the queues first
_CHUNK = 1000
_MESSAGE = {"topic": "text", "task": "text", "subject": "text", "facts": "jsonb"}
_FRESH = {
    "due_at": f"statement_timestamp() + interval '{HEAD_START} s'",
    "attempts": "0",
}
# One that was taken up, or sent to be, is due at another moment.
_PROMISED = (
    "SELECT subject, due_at FROM journal_outboxmessage WHERE done_at IS NULL"
    " AND due_at = ANY(%s) AND held_until = due_at AND topic = %s"
    " AND subject = ANY(%s) FOR SHARE"
)

logger = get_logger(__name__)


def publish(topic: str, subject: str, **facts: Fact) -> list[OutboxMessage]:
    """Promise that every consumer of `topic` will hear of `subject` (a row's id).

    Raises `KeyError` for a topic without a route. Caller holds a transaction.
    """
    return publish_many(topic, [(subject, facts)])


def publish_many(
    topic: str, subjects: Iterable[tuple[str, Mapping[str, Fact]]]
) -> list[OutboxMessage]:
    """`publish` for many subjects with one INSERT for a thousand rows."""
    transactions.require("Publishing")
    tasks = settings.OUTBOX_ROUTES[topic]
    messages = [
        OutboxMessage(topic=topic, task=task, subject=subject, facts=dict(facts))
        for subject, facts in subjects
        for task in tasks
    ]
    for start in range(0, len(messages), _CHUNK):
        _insert(messages[start : start + _CHUNK])
    if messages:
        transaction.on_commit(partial(_nudge, messages))
    return messages


def publish_later(
    topic: str, subject: str, *, at: datetime, **facts: Fact
) -> list[OutboxMessage]:
    """The same, for a time to come: nobody may act on it before then."""
    transactions.require("Publishing")
    return _later(topic, [(subject, at)], facts)


def publish_once(topic: str, due: Mapping[str, datetime]) -> None:
    """`publish_later` for each subject at its moment, unless the same is promised for
    the same one. What is promised already cannot be taken up before this transaction
    ends, so that whoever takes it up sees what was written beside it."""
    transactions.require("Publishing")
    if not due:
        return
    with connection.cursor() as cursor:
        cursor.execute(_PROMISED, [list(due.values()), topic, list(due)])
        there = set(cursor.fetchall())
    _later(topic, [one for one in due.items() if one not in there], {})


def _later(
    topic: str, due: Sequence[tuple[str, datetime]], facts: Mapping[str, Fact]
) -> list[OutboxMessage]:
    return OutboxMessage.objects.bulk_create(
        OutboxMessage(
            topic=topic,
            task=task,
            subject=subject,
            facts=dict(facts),
            due_at=at,
            held_until=at,
        )
        for subject, at in due
        for task in settings.OUTBOX_ROUTES[topic]
    )


def _insert(messages: Sequence[OutboxMessage]) -> None:
    rows = [[m.topic, m.task, m.subject, Jsonb(m.facts)] for m in messages]
    made = insert("journal_outboxmessage", _MESSAGE, rows, returning="id", same=_FRESH)
    for message, (pk,) in zip(messages, made, strict=True):
        message.pk, message._state.adding = pk, False


def _nudge(messages: Sequence[OutboxMessage]) -> None:
    """What one commit promised. Of many no more than the queues have room for: the
    broker would hold what the sweep sends in time anyway, and whoever committed would
    stand still for a millisecond a promise."""
    send(messages if len(messages) <= FEW else _that_fit(messages))


def _that_fit(messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
    try:
        room = {task: dispatch.room(task) for task in {one.task for one in messages}}
    except Exception as error:  # whatever a broker's client raises
        logger.warning("outbox.nudge_failed", error=type(error).__name__)
        return []
    place: dict[str, Iterator[int]] = {task: iter(range(n)) for task, n in room.items()}
    return [one for one in messages if next(place[one.task], None) is not None]


def send(messages: Sequence[OutboxMessage]) -> int:
    """Nudge whoever is to work on these; how many the broker took. The first failure
    ends it, for the sweep is there. Caller holds no transaction."""
    for count, message in enumerate(messages):
        failpoints.point("before_nudge", message.subject)
        try:
            dispatch.send(message.task, message.pk)
        except Exception as error:  # whatever a broker's client raises
            logger.warning("outbox.nudge_failed", error=type(error).__name__)
            return count
    return len(messages)


@contextmanager
def consume(message_id: int) -> Iterator[OutboxMessage | None]:
    """The message to work on, or None: done, held by another, resting, or not ours.

    Leaving the block marks it done; an exception lets it rest, 5 s doubling to 10 min,
    and goes on to the caller. No transaction is open inside, so the work may take
    `lease_seconds`; a crash frees the message after that long, so the work must bear
    being done twice.
    """
    message = _claim(message_id)
    if message is None:
        yield None
        return
    try:
        failpoints.point("message_claimed", message.subject)
        yield message
    except BaseException:
        _rest(message)
        raise
    failpoints.point("before_done", message.subject)
    _held(message).update(done_at=Now(), held_until=None)


def free() -> Q:
    """What no consumer holds or has done."""
    unheld = Q(held_until__isnull=True) | Q(held_until__lte=Now())
    return Q(done_at__isnull=True) & unheld


def _claim(message_id: int) -> OutboxMessage | None:
    """Hold the message by one guarded update, committed before the work begins."""
    message = OutboxMessage.objects.filter(pk=message_id).first()
    if message is None or not _is_addressed(message):
        return None
    until = _in(settings.HOLDPOINT.lease_seconds)
    with transaction.atomic(durable=True):
        claimed = OutboxMessage.objects.filter(
            free(), pk=message_id, attempts=message.attempts
        ).update(attempts=F("attempts") + 1, held_until=until, due_at=until)
        failpoints.point("message_uncommitted", message.subject)
    message.attempts += 1
    return message if claimed else None


def _is_addressed(message: OutboxMessage) -> bool:
    # A forged or misrouted id must not let one task mark another's promise as done.
    task = celery.current_task
    return not task or task.name == message.task  # guard: own-message


def _rest(message: OutboxMessage) -> None:
    rest = min(LONGEST_REST, SHORTEST_REST * 2 ** min(message.attempts - 1, 10))
    _held(message).update(held_until=_in(rest), due_at=_in(rest))


def _held(message: OutboxMessage) -> QuerySet[OutboxMessage]:
    # The attempt is the fence: who lost the claim writes nothing.
    # guard: message-fence
    return OutboxMessage.objects.filter(
        pk=message.pk, attempts=message.attempts, done_at__isnull=True
    )


def _in(seconds: int) -> Combinable:
    return Now() + span(seconds)


def span(seconds: int) -> Value:
    """So many seconds, for a query."""
    return Value(timedelta(seconds=seconds), output_field=DurationField())
