"""What the holder of a claim must still have: its fence, and enough of its lease
(gate.md section 7)."""

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


def note_outside() -> None:
    """Leave outside the database that this claim was made, before its effect: so a
    backup from before it is known for one (proof.md T25).

    Raises Restored, or OSError where it cannot be written. Outside a transaction; in
    one of a test, which is never committed, it does not happen.
    """
    transaction.on_commit(restore_epochs.advance)


def check_held(claim: Claim) -> None:
    """Raises StaleFence when the lease may end during the effect: who was held up for
    so long does not begin what a successor may be doing. Leaves that it is begun."""
    _begin(claim, timedelta(seconds=settings.HOLDPOINT.http_timeout))


def hand_out(claim: Claim) -> None:
    """Leave that an agent is given this claim, right before it is. Raises StaleFence
    when its lease has lapsed, or a check said no to another who was to be given it."""
    _begin(claim, timedelta())


def _begin(claim: Claim, enough: timedelta) -> None:
    held = Execution.objects.filter(
        pk=claim.execution.pk,
        status=ExecutionStatus.CLAIMED,
        fence=claim.fence,
        lease_until__gt=clock.ClockTimestamp() + enough,
    )
    # guard: begin-in-time
    if held.update(began_at=clock.ClockTimestamp(), retried_at=None) != 1:
        raise StaleFence


def fenced(execution_id: str, fence: int) -> Execution:
    """The claimed execution, locked. Raises StaleFence when another took it over."""
    execution = locks.execution(execution_id)
    # guard: fence
    if execution.status != ExecutionStatus.CLAIMED or execution.fence != fence:
        raise StaleFence
    return execution
