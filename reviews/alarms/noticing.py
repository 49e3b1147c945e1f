"""What an alarm is raised for while it happens, by whoever holds the execution."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reviews.choices import AlarmKind, RequestStatus
from reviews.models import ApprovalRequest, Execution

from .raising import raise_

# Somebody wanted it not to run: that is no surprise to anybody.
DELIBERATE = frozenset({"stopped", "withdrawn_by_agent", "thread_finished"})


def refused(execution: Execution, *, code: str, now: datetime) -> None:
    """What people said yes to, or were told of, did not run. Caller holds the
    execution's lock, and takes no other after this."""
    if code == "bytes_changed":
        _raise(AlarmKind.OTHER_BYTES, execution, now, stage="stored")
    if code not in DELIBERATE and was_promised(execution):
        _raise(AlarmKind.NEVER_EXECUTED, execution, now, code=code)


def was_promised(execution: Execution) -> bool:
    """Whether people approved it, or were told that it runs."""
    if execution.announced_in_id is not None:
        return True
    asked = ApprovalRequest.objects.filter(proposal=execution.proposal_id)
    return asked.filter(status=RequestStatus.AUTHORIZED).exists()


def _raise(kind: AlarmKind, execution: Execution, now: datetime, **facts: Any) -> None:
    raise_(
        kind,
        subject=execution.pk,
        proposal=execution.grant.proposal,
        data={"execution": execution.pk, **facts},
        now=now,
    )
