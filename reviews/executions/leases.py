"""What the holder of a claim needs before it acts or writes: the current fence, and
enough time left on its lease (gate.md section 7)."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import transaction

from journal import clock, restore_epochs
from journal.errors import StaleFence
from reviews import locks
from reviews.choices import ExecutionStatus
from reviews.models import Execution

from .claims import Claim


def record_outside_database() -> None:
    """Record outside the database that a claim was made, before its effect, so that an
    older backup is recognised after a restore (proof.md T25).

    Raises Restored, or OSError when the note cannot be written. Call it outside a
    transaction; inside the transaction of a test, which never commits, it does nothing.
    """
    transaction.on_commit(restore_epochs.advance_mark)


def check_lease_holds(claim: Claim) -> None:
    """Mark the attempt as begun. Raises StaleFence when the lease may end during the
    effect: a delayed holder must not begin what a successor may already perform."""
    _mark_begun(claim, timedelta(seconds=settings.HOLDPOINT.http_timeout))


def mark_handed_out(claim: Claim) -> None:
    """Mark the claim as begun, right before it is returned to the agent. Raises
    StaleFence when its lease has lapsed, or a concurrent call released the claim."""
    _mark_begun(claim, timedelta())


def _mark_begun(claim: Claim, enough: timedelta) -> None:
    held = Execution.objects.filter(
        pk=claim.execution.pk,
        status=ExecutionStatus.CLAIMED,
        fence=claim.fence,
        lease_until__gt=clock.ClockTimestamp() + enough,
    )
    # guard: begin-in-time
    if held.update(began_at=clock.ClockTimestamp(), retried_at=None) != 1:
        raise StaleFence


def load_fenced_execution(execution_id: str, fence: int) -> Execution:
    """Load the claimed execution, locked. Raises NotFound, and StaleFence when another
    holder took it over."""
    execution = locks.lock_execution(execution_id)
    # guard: fence
    if execution.status != ExecutionStatus.CLAIMED or execution.fence != fence:
        raise StaleFence
    return execution
