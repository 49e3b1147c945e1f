"""The journal's sweeps. Each only calls one operation; beat calls them for ever."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings

from . import sequencer, sweeps

MOST_ROUNDS = 10  # so that a long backlog stays within one task's time limit


@shared_task(ignore_result=True)
def sweep_outbox() -> int:
    """Send again what is due."""
    return sweeps.sweep()


@shared_task(ignore_result=True)
def prune_outbox() -> int:
    """Forget promises that were kept long ago; how many."""
    days = settings.HOLDPOINT.keep_outbox_days
    return sweeps.head("journal_outboxmessage", made="done_at", days=days)


@shared_task(ignore_result=True)
def sequence() -> int:
    """Place the new records in the log; how many."""
    placed = 0
    for _ in range(MOST_ROUNDS):
        count = sequencer.sequence(sequencer.LIMIT)
        placed += count
        if count < sequencer.LIMIT:
            break
    return placed
