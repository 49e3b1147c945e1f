"""The transactional outbox: promises to notify or resume, written with the change that
caused them.

A broker message is only a nudge: it may be lost, repeated, delayed or forged. Three
things make sure that the work is done: the row, the sweep in `journal.sweeps` that
sends a nudge again, and the claim that lets one consumer work at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import celery
from django.conf import settings
from django.db import connection, transaction
from django.db.models import DurationField, F, Q, QuerySet, Value
from django.db.models.functions import Now
from structlog.stdlib import get_logger

from . import dispatch, failpoints, transactions, writes
from .models import OutboxMessage
from .operations import operation
from .prepared_queries import Parameter, PreparedQuery, PreparedUpdate

Fact = str | int

# Seconds: how long the first nudge has before the sweep sends the message again, and
# the shortest and longest delay before a retry.
HEAD_START = 5
SHORTEST_REST, LONGEST_REST = 5, 600
MAX_UNCHECKED_NUDGES = (
    50  # up to this many messages of one commit are sent without checking the queues
)
_CHUNK = 1000
_PARTS = (
    (
        "message_added",
        f"""
        INSERT INTO journal_outboxmessage (topic, task, subject, facts, due_at,
                                           attempts)
        SELECT topic, task, subject, facts,
               statement_timestamp() + interval '{HEAD_START} s', 0
        FROM jsonb_to_recordset(%(rows)s::jsonb)
             AS given (topic text, task text, subject text, facts jsonb)
        RETURNING id
        """,  # noqa: S608 a number
    ),
)
# Finds messages already published for the same moment. A claim or a sweep moves
# `due_at`, so a message that was taken up or sent is not found.
_ALREADY_PROMISED = (
    "SELECT subject, due_at FROM journal_outboxmessage WHERE done_at IS NULL"
    " AND due_at = ANY(%s) AND held_until = due_at AND topic = %s"
    " AND subject = ANY(%s) FOR SHARE"
)

logger = get_logger(__name__)


def publish(topic: str, subject: str, **facts: Fact) -> list[OutboxMessage]:
    """Promise to tell every consumer of `topic` about `subject`, the id of a row.

    The consumers are the tasks of `settings.OUTBOX_ROUTES`. Raises `KeyError` for a
    topic without a route. Caller holds a transaction.
    """
    return publish_many(topic, [(subject, facts)])


def publish_many(
    topic: str, subjects: Iterable[tuple[str, Mapping[str, Fact]]]
) -> list[OutboxMessage]:
    """`publish` for many subjects, given with their facts, with one INSERT per 1,000
    rows. Caller holds a transaction."""
    transactions.require_transaction("Publishing")
    tasks = settings.OUTBOX_ROUTES[topic]
    messages = [
        OutboxMessage(topic=topic, task=task, subject=subject, facts=dict(facts))
        for subject, facts in subjects
        for task in tasks
    ]
    for start in range(0, len(messages), _CHUNK):
        _insert_messages(messages[start : start + _CHUNK])
    if messages:
        transaction.on_commit(partial(_nudge_after_commit, messages))
    return messages


def publish_later(
    topic: str, subject: str, *, at: datetime, **facts: Fact
) -> list[OutboxMessage]:
    """`publish` for consumers that claim it at `at` or later. Caller as `publish`."""
    transactions.require_transaction("Publishing")
    return _create_later(topic, [(subject, at)], facts)


def publish_once(topic: str, due: Mapping[str, datetime]) -> None:
    """`publish_later` for each subject of `due` at its time, unless a message for the
    same subject and time is published already.

    It locks the messages that are published already until the transaction ends, so that
    the consumer that claims one sees what this transaction writes. Caller holds a
    transaction.
    """
    transactions.require_transaction("Publishing")
    if not due:
        return
    with connection.cursor() as cursor:
        cursor.execute(_ALREADY_PROMISED, [list(due.values()), topic, list(due)])
        there = set(cursor.fetchall())
    _create_later(topic, [pair for pair in due.items() if pair not in there], {})


def _create_later(
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


def _insert_messages(messages: Sequence[OutboxMessage]) -> None:
    rows = [
        {"topic": m.topic, "task": m.task, "subject": m.subject, "facts": m.facts}
        for m in messages
    ]
    writes.insert_values(_PARTS, rows, key="id", on_result=partial(_set_keys, messages))


def _set_keys(messages: Sequence[OutboxMessage], ids: Sequence[int]) -> None:
    for message, pk in zip(messages, ids, strict=True):
        message.pk, message._state.adding = pk, False


def _nudge_after_commit(messages: Sequence[OutboxMessage]) -> None:
    """Send the nudges of one commit; if there are many, only as many as the queues have
    room for. The sweep sends the rest in time, and the process that committed would
    otherwise wait a millisecond for each message."""
    nudge_consumers(
        messages if len(messages) <= MAX_UNCHECKED_NUDGES else _limit_to_room(messages)
    )


def _limit_to_room(messages: Sequence[OutboxMessage]) -> list[OutboxMessage]:
    try:
        room = {
            task: dispatch.count_free_slots(task) for task in {m.task for m in messages}
        }
    except Exception as error:  # any exception of the broker's client
        logger.warning("outbox.nudge_failed", error=type(error).__name__)
        return []
    place: dict[str, Iterator[int]] = {task: iter(range(n)) for task, n in room.items()}
    return [m for m in messages if next(place[m.task], None) is not None]


def nudge_consumers(messages: Sequence[OutboxMessage]) -> int:
    """Send a nudge for each message and return how many the broker accepted. It stops
    at the first failure, because the sweep sends the rest. Caller holds no
    transaction."""
    for count, message in enumerate(messages):
        failpoints.point("before_nudge", message.subject)
        try:
            dispatch.send_message(message.task, message.pk)
        except Exception as error:  # any exception of the broker's client
            logger.warning("outbox.nudge_failed", error=type(error).__name__)
            return count
    return len(messages)


@contextmanager
def consume(message_id: int) -> Iterator[OutboxMessage | None]:
    """Claim a message and yield it. Yields None if the message is done, claimed by
    another consumer, waiting for a retry, or addressed to another task.

    Leaving the block marks the message as done. An exception delays the next attempt,
    by 5 s doubling up to 10 min, and propagates. No transaction is open inside the
    block, and the work may take `lease_seconds`. After a crash the message becomes
    claimable once that time is over, so the work must be safe to do twice.
    """
    message = _claim_message(message_id)
    if message is None:
        yield None
        return
    try:
        failpoints.point("message_claimed", message.subject)
        yield message
    except BaseException:
        _schedule_retry(message)
        raise
    failpoints.point("before_done", message.subject)
    _MARK_DONE.execute(pk=message.pk, attempts=message.attempts)


def build_claimable_filter() -> Q:
    """The filter for messages that are neither done nor held."""
    unheld = Q(held_until__isnull=True) | Q(held_until__lte=Now())
    return Q(done_at__isnull=True) & unheld


def _claim_message(message_id: int) -> OutboxMessage | None:
    """Claim the message with one guarded update, committed before the work begins. None
    if it is gone, addressed to another task, or another consumer was faster."""
    message = _MESSAGE.fetch_first(pk=message_id)
    if message is None or not _is_own_message(message):
        return None
    if not _write_claim(message):
        return None
    message.attempts += 1
    return message


@operation(entry="consume", locks="the message", writes="OutboxMessage")
def _write_claim(message: OutboxMessage) -> bool:
    claimed = _CLAIM.execute(
        pk=message.pk,
        attempts=message.attempts,
        lease=timedelta(seconds=settings.COUNTERSEAL.lease_seconds),
    )
    failpoints.point("message_uncommitted", message.subject)
    return bool(claimed)


def _is_own_message(message: OutboxMessage) -> bool:
    # A forged or misrouted id must not let one task mark another's message as done.
    task = celery.current_task
    return not task or task.name == message.task  # guard: own-message


def _schedule_retry(message: OutboxMessage) -> None:
    rest = min(LONGEST_REST, SHORTEST_REST * 2 ** min(message.attempts - 1, 10))
    due = Now() + build_interval(rest)
    _select_claimed(message.pk, message.attempts).update(held_until=due, due_at=due)


def _select_claimed(pk: Any, attempts: Any) -> QuerySet[OutboxMessage]:
    """The message, given by values or parameters, while this consumer holds it."""
    # The attempt number is the fence: a consumer that lost its claim writes nothing.
    # guard: message-fence
    return OutboxMessage.objects.filter(pk=pk, attempts=attempts, done_at__isnull=True)


def _build_claim() -> tuple[QuerySet[OutboxMessage], dict[str, Any]]:
    until = Now() + Parameter("lease", DurationField())
    rows = OutboxMessage.objects.filter(
        build_claimable_filter(), pk=Parameter("pk"), attempts=Parameter("attempts")
    )
    changes = {"attempts": F("attempts") + 1, "held_until": until, "due_at": until}
    return rows, changes


_MESSAGE = PreparedQuery(lambda: OutboxMessage.objects.filter(pk=Parameter("pk")))
_CLAIM = PreparedUpdate(_build_claim)
_MARK_DONE = PreparedUpdate(
    lambda: (
        _select_claimed(Parameter("pk"), Parameter("attempts")),
        {"done_at": Now(), "held_until": None},
    )
)


def build_interval(seconds: int) -> Value:
    """An interval of so many seconds, as an expression for a query."""
    return Value(timedelta(seconds=seconds), output_field=DurationField())
