"""Retention of the agents' data: deletes old idempotency keys, ended deliveries and
unused endpoints, and erases the blobs of finished runs by destroying their key.

Acknowledgements are never deleted: an outcome's id exists without a row, so Counterseal
would offer an outcome again whose acknowledgement it had deleted.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KT

from journal import clock, log, sweeps
from journal.models import OutboxMessage
from journal.operations import operation
from journal.state_machine import PROPOSAL_TOLD
from reviews.choices import OPEN, UNFINISHED, AlarmKind, ExecutionStatus
from reviews.models import Alarm, ApprovalRequest, Execution
from reviews.models.alarms import STANDING

from . import locks
from .choices import ENDED_STATUSES, ThreadStatus
from .models import Callback, Checkpoint, Delivery, DeliveryAttempt, Endpoint, Thread

CHUNK = 500
RETENTION_ACTOR = log.Actor("system", "retention")


def delete_old_keys() -> int:
    """Delete the idempotency keys that are older than any proposal can wait; return how
    many."""
    return sweeps.delete_old_rows(
        "agents_idempotencykey",
        made="created_at",
        days=settings.COUNTERSEAL.keep_keys_days,
    )


@operation(
    locks="threads (skip locked)", writes="Thread, Checkpoint", logs="thread.erased"
)
def erase_blobs() -> int:
    """Destroy the blobs of runs that finished long ago, and the keys they are encrypted
    under; return how many runs. The checkpoints stay, with the blobs' digests and
    sizes."""
    now = clock.now()
    over = now - timedelta(days=settings.COUNTERSEAL.keep_blobs_days)
    finished = Thread.objects.filter(
        status=ThreadStatus.FINISHED, wrapped_key__isnull=False, finished_at__lt=over
    )
    oldest = finished.select_related("agent").order_by("finished_at")
    threads = locks.lock_idle_threads(oldest, CHUNK)

    def erase(old: list[Thread]) -> None:
        pks = [thread.pk for thread in old]
        Thread.objects.filter(pk__in=pks).update(wrapped_key=None)
        Checkpoint.objects.filter(thread__in=pks, blob__isnull=False).update(blob=None)
        log.append_many(
            log.Entry(
                "thread.erased",
                actor=RETENTION_ACTOR,
                at=now,
                agent=thread.agent.slug,
                thread=thread.name,
            )
            for thread in old
        )

    return len(sweeps.apply_to_all(erase, threads))


@operation(
    locks="deliveries (skip locked)", writes="Delivery, DeliveryAttempt, Callback"
)
def delete_old_deliveries() -> int:
    """Delete deliveries that ended long ago, with their attempts; return how many. Kept
    are deliveries whose event may be enqueued again, and those that an open alarm links
    to."""
    over = clock.now() - timedelta(days=settings.COUNTERSEAL.keep_deliveries_days)
    ended = Delivery.objects.filter(status__in=ENDED_STATUSES, ended_at__lt=over)
    # While an outbox message is not processed, the deliveries are the only record of
    # which endpoints have its event already.
    undelivered = OutboxMessage.objects.filter(
        topic=PROPOSAL_TOLD, done_at__isnull=True
    )
    kinds = [AlarmKind.DELIVERY_DEAD, AlarmKind.INVALID_OUTCOME]
    alarms = Alarm.objects.filter(STANDING, kind__in=kinds, data__has_key="delivery")
    alarmed = list(alarms.values_list(KT("data__delivery"), flat=True))
    unneeded = ended.exclude(proposal__in=undelivered.values("subject"))
    deliveries = locks.lock_idle_deliveries(unneeded.exclude(pk__in=alarmed), CHUNK)

    def delete(old: list[Delivery]) -> None:
        pks = [delivery.pk for delivery in old]
        DeliveryAttempt.objects.filter(delivery__in=pks).delete()
        Delivery.objects.filter(pk__in=pks).delete()
        _delete_callbacks({delivery.proposal for delivery in old})

    return len(sweeps.apply_to_all(delete, deliveries))


def _delete_callbacks(proposals: Collection[str]) -> None:
    """Delete the callbacks of those proposals that can have no further event and have
    no delivery left."""
    deliveries = Delivery.objects.filter(proposal__in=proposals)
    requests = ApprovalRequest.objects.filter(proposal__in=proposals, status__in=OPEN)
    # A failed execution can change while a person may have it retried.
    again = Q(status=ExecutionStatus.FAILED, grant__expires_at__gt=clock.now())
    executions = Execution.objects.filter(
        Q(status__in=UNFINISHED) | again, proposal__in=proposals
    )
    callbacks = Callback.objects.filter(pk__in=proposals)
    for rows in (deliveries, requests, executions):
        callbacks = callbacks.exclude(pk__in=rows.values("proposal"))
    callbacks.delete()


@operation(locks="the agents' listeners (advisory), by name", writes="Endpoint")
def delete_unused_endpoints() -> int:
    """Delete endpoints that only proposals named and that no delivery or callback uses
    any more; return how many. An endpoint that a person switched off is kept: a new row
    of the same origin would be on."""
    unused = Endpoint.objects.filter(
        ~Exists(Delivery.objects.filter(endpoint=OuterRef("pk"))),
        ~Exists(Callback.objects.filter(endpoint=OuterRef("pk"))),
        by_proposal=True,
    ).exclude(off_why="person")
    oldest = unused.select_related("agent").order_by("created_at")[:CHUNK]
    agents = {place.agent_id: place.agent for place in oldest}
    for agent in sorted(agents.values(), key=lambda agent: agent.slug):
        locks.lock_listeners(agent)
    return unused.filter(agent__in=agents).delete()[0]
