"""Deletion of old data: sent notices, expired sessions, results of services.

Decisions, readings and page evidence are never deleted.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.sessions.models import Session

from journal import clock, log, sweeps
from journal.operations import operation
from policies import sign_ins

from . import locks
from .models import Execution

CHUNK = 500
RETENTION_ACTOR = log.Actor("system", "retention")


def delete_old_notices() -> int:
    """Delete old notices that were sent or dropped; return how many."""
    return sweeps.delete_old_rows(
        "reviews_notice",
        made="at",
        days=settings.COUNTERSEAL.keep_notices_days,
        over="sent_at IS NOT NULL OR let_go <> ''",
    )


def delete_expired_sessions() -> int:
    """Delete up to 500 expired sessions, and as many lines about such that are gone;
    return how many sessions."""
    sign_ins.delete_ended(CHUNK)
    over = Session.objects.filter(expire_date__lt=clock.now())
    oldest = list(over.order_by("expire_date").values_list("pk", flat=True)[:CHUNK])
    return Session.objects.filter(pk__in=oldest).delete()[0]


@operation(
    locks="executions (skip locked)", writes="Execution", logs="execution.result_erased"
)
def erase_results() -> int:
    """Erase up to 500 old results of services; return how many. The digest of the
    result and the outcome stay."""
    now = clock.now()
    over = now - timedelta(days=settings.COUNTERSEAL.keep_results_days)
    old = Execution.objects.filter(result__isnull=False, finished_at__lt=over)
    oldest = old.select_related("proposal").order_by("finished_at")
    rows = list(locks.lock_due_rows(oldest)[:CHUNK])

    def erase(executions: list[Execution]) -> None:
        pks = [row.pk for row in executions]
        Execution.objects.filter(pk__in=pks).update(result=None, result_shown=None)
        log.append_many(
            log.Entry(
                "execution.result_erased",
                actor=RETENTION_ACTOR,
                at=now,
                proposal=row.proposal_id,
                agent=row.proposal.agent,
                thread=row.proposal.thread,
                data={"execution": row.pk},
            )
            for row in executions
        )

    return len(sweeps.apply_to_all(erase, rows))
