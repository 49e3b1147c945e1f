"""A check said no before anything was begun."""

from __future__ import annotations

from django.db import transaction

from journal import clock
from journal.errors import StaleFence

from ..models import Execution
from . import claims, finish, leases, rechecks
from .claims import Claim
from .rechecks import No
from .requeueing import back_off, requeue, tries_left


@transaction.atomic(durable=True)
def give_back(*, claim: Claim, no: No) -> None:
    """A check said no to what an agent redeemed, and nobody was given it: nothing of it
    happens, or after an attempt that may have had an effect all is as before, where the
    reason is one that passes or a switch.

    Raises StaleFence, also when a repeated call was given it meanwhile: what may be
    under way stands.
    """
    execution = leases.fenced(claim.execution.pk, claim.fence)
    if execution.began_at is not None:  # guard: redeem-begun
        raise StaleFence
    if claim.untouched:
        _refuse(execution, no)
    elif no.later or no in {rechecks.STOPPED, rechecks.STOPPED_SINCE}:
        Execution.objects.filter(pk=execution.pk, fence=claim.fence).update(
            lease_until=clock.now(), attempts=execution.attempts - 1
        )


@transaction.atomic(durable=True)
def refuse(*, execution_id: str, fence: int, no: No) -> Execution:
    """A re-check said no, and no attempt has reached the world. Raises StaleFence."""
    execution = leases.fenced(execution_id, fence)
    _refuse(execution, no)
    return execution


def _refuse(execution: Execution, no: No) -> None:
    now = clock.now()
    due = now + back_off(execution)
    again = (execution, no.code, no.detail, due, claims.EXECUTOR, now)
    if no.free:
        requeue(*again, attempts=execution.attempts - 1)
    elif no.later and tries_left(execution):
        requeue(*again)
    else:
        finish.refuse(execution, no, now)
