"""What an agent calls its redeem by, kept as a hash: a call whose answer was lost is
answered with the claim that it made, and no other call is."""

from __future__ import annotations

import hmac
from datetime import datetime

from journal import canonical

from .choices import ExecutionStatus
from .models import Execution


def remember(execution: Execution, key: str) -> None:
    """Which call made the claim that was just written. Caller holds its lock."""
    made = Execution.objects.filter(pk=execution.pk, fence=execution.fence)
    made.update(redeem_digest=_digest(execution, key))


def made_claim(execution: Execution, key: str, now: datetime) -> bool:
    """Whether a call with this key made the claim that stands. No key made none."""
    if not key or execution.status != ExecutionStatus.CLAIMED:
        return False
    if execution.lease_until is None or execution.lease_until <= now:
        return False
    # guard: redeem-key
    return hmac.compare_digest(execution.redeem_digest, _digest(execution, key))


def _digest(execution: Execution, key: str) -> str:
    """Of one claim: the next has a higher fence, whoever makes it. A process of the
    release before leaves this column as it is."""
    agent = execution.grant.proposal.agent
    said = [agent, execution.pk, execution.fence, key]
    return canonical.digest(canonical.encode(said))
