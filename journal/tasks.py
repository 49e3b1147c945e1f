"""Periodic Celery tasks of the journal. Each calls one operation."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from . import periods, sequencer, sweeps

MOST_ROUNDS = 10  # so that a long backlog stays within one task's time limit


@shared_task(ignore_result=True)
def sweep_outbox() -> int:
    """Send due outbox messages again; return how many."""
    return sweeps.send_due_messages()


@shared_task(ignore_result=True)
def prune_outbox() -> int:
    """Delete outbox messages that were done long ago; return how many."""
    days = settings.COUNTERSEAL.keep_outbox_days
    return sweeps.delete_old_rows("journal_outboxmessage", made="done_at", days=days)


@shared_task(ignore_result=True)
def sequence() -> int:
    """Assign positions to new log records; return how many."""
    placed = 0
    for _ in range(MOST_ROUNDS):
        count = sequencer.sequence_records(sequencer.LIMIT)
        placed += count
        if count < sequencer.LIMIT:
            break
    return placed


@shared_task(ignore_result=True)
def begin_period() -> str:
    """Begin a period of the log if one is due; return why."""
    return periods.begin_due_period()
