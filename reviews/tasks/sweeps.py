"""What time ends: requests, recall windows, holds; and the incidents that stop the
clock."""

from __future__ import annotations

from contextlib import suppress

from journal import outbox
from journal.errors import Restored
from reviews import deadlines
from reviews.leases import ending
from reviews.stops import incidents

from .named import task

MOST_CHUNKS = 20  # so that a long backlog stays within one task's time limit


@task()
def close_recall_windows() -> int:
    """Authorise what nobody recalled in time."""
    with suppress(Restored):
        return _in_chunks(deadlines.close_recall_windows)
    return 0


@task()
def expire_due() -> int:
    """End what nobody answered in time."""
    with suppress(Restored):
        return _in_chunks(deadlines.expire_chunk)
    return 0


@task()
def remind_before_deadline() -> int:
    """Promise a reminder for what is near its deadline."""
    return deadlines.remind()


@task()
def lapse_leases() -> int:
    """Free what ran out while somebody waits for it."""
    return ending.lapse_chunk()


@task()
def hold_deadlines() -> int:
    """Keep ahead what an incident freezes, and let run again what it does not."""
    return _in_chunks(incidents.hold_deadlines)


@task()
def freeze_deadlines(message_id: int) -> None:
    """The nudge of a declared incident."""
    with outbox.consume(message_id) as message:
        if message is not None:
            _in_chunks(incidents.hold_deadlines)


def _in_chunks(operation: deadlines.Sweep) -> int:
    """Repeat an operation until it finds less than a chunk."""
    total = 0
    for _ in range(MOST_CHUNKS):
        found = operation()
        total += len(found)
        if len(found) < deadlines.CHUNK:
            break
    return total
