"""What a new Stop row does to work that is under way."""

from __future__ import annotations

import time
from contextlib import suppress

from journal import failpoints, outbox, transactions
from journal.errors import Conflict, Decided
from reviews.decisions import revoke
from reviews.requests import proposals
from reviews.stops import scope

from ..choices import Scope
from ..models import Stop
from .named import task

BETWEEN_SWEEPS_S = 0.1


@task()
def enforce_stop(message_id: int) -> None:
    """Withdraw and refuse what waits under a new Stop row, and what was being
    submitted as it came: that had looked at the switches before."""
    with outbox.consume(message_id) as message:
        if message is None:
            return
        horizon = transactions.horizon()
        # The task's own time limit ends it; then the outbox asks again.
        while not _enforce(message.subject, horizon):
            time.sleep(BETWEEN_SWEEPS_S)


def _enforce(stop_id: str, horizon: int) -> bool:
    """One sweep; whether it was the last one needed."""
    over = transactions.are_over(horizon)  # asked first: then all it wrote is found
    stop = Stop.objects.get(pk=stop_id)
    for proposal_id in scope.under(stop):
        # Settled or claimed since it was listed: the others still wait.
        with suppress(Decided, Conflict):
            _take_back(proposal_id, stop)
    failpoints.point("stop_enforced", stop_id)
    return over


def _take_back(proposal_id: str, stop: Stop) -> None:
    """A reviewer's approval counts no more; of all else nothing is wanted any more."""
    if stop.scope == Scope.REVIEWER:
        revoke.revoke_approval(proposal_id=proposal_id, reviewer=stop.key)
    else:
        proposals.withdraw_stopped(proposal_id=proposal_id, code="stopped")
