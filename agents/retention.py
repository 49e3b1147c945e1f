"""What an agent left here, forgotten when it is needed no more: its answers, and by
destroying the key its finished runs' blobs (gate.md section 4)."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction

from journal import clock, log, pruning

from .choices import ThreadStatus
from .models import Checkpoint, Thread

CHUNK = 500
KEEPER = log.Actor("system", "retention")


def forget_keys() -> int:
    """Idempotency keys past the longest wait; how many."""
    return pruning.head(
        "agents_idempotencykey",
        made="created_at",
        days=settings.HOLDPOINT.keep_keys_days,
    )


@transaction.atomic(durable=True)
def erase_blobs() -> int:
    """Destroy the keys of runs that finished long ago, and what they sealed; how
    many. That they were there, and their digests, stay."""
    now = clock.now()
    over = now - timedelta(days=settings.HOLDPOINT.keep_blobs_days)
    kept = Thread.objects.filter(
        status=ThreadStatus.FINISHED, wrapped_key__isnull=False, finished_at__lt=over
    )
    threads = list(kept.select_related("agent").order_by("finished_at")[:CHUNK])
    pks = [thread.pk for thread in threads]
    Thread.objects.filter(pk__in=pks).update(wrapped_key=None)
    Checkpoint.objects.filter(thread__in=pks, blob__isnull=False).update(blob=None)
    log.append_many(
        log.Entry(
            "thread.erased",
            actor=KEEPER,
            at=now,
            agent=thread.agent.slug,
            thread=thread.name,
        )
        for thread in threads
    )
    return len(threads)
