"""What an alarm is raised for while it happens, by whoever holds the execution."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, QuerySet, TextField, Value
from django.db.models.functions import Concat

from journal import canonical
from policies.choices import ExecutionClass
from reviews.choices import AlarmKind, GrantStatus, RequestStatus
from reviews.models import Alarm, ApprovalRequest, Execution, LateReport

from .raising import close_itself, raise_

# Somebody wanted it not to run: that is no surprise to anybody.
DELIBERATE = frozenset(
    {
        "stopped",
        "taken_back",
        "withdrawn_by_agent",
        "thread_finished",
        "approval_revoked",
    }
)


def about(execution: Execution, kind: AlarmKind, now: datetime, **facts: Any) -> None:
    """Raise an alarm about an execution. Caller holds a transaction, and takes no other
    lock after this."""
    raise_(
        kind,
        subject=execution.pk,
        proposal=execution.grant.proposal,
        data={"execution": execution.pk, **facts},
        now=now,
    )


def refused(execution: Execution, *, code: str, now: datetime) -> None:
    """What people said yes to, or were told of, did not run. Caller holds the
    execution's lock, and takes no other after this."""
    if code == "bytes_changed":
        about(execution, AlarmKind.OTHER_BYTES, now, stage="stored")
    if code == "votes_missing":
        about(execution, AlarmKind.WITHOUT_VOTES, now, stage="effect")
    if code not in DELIBERATE and was_promised(execution):
        about(execution, AlarmKind.NEVER_EXECUTED, now, code=code)


def was_promised(execution: Execution) -> bool:
    """Whether people approved it, or were told that it runs."""
    if execution.announced_in_id is not None:
        return True
    asked = ApprovalRequest.objects.filter(proposal=execution.proposal_id)
    return asked.filter(status=RequestStatus.AUTHORIZED).exists()


def succeeded(execution: Execution, now: datetime) -> None:
    """It ran: was it allowed to, with these bytes, and this once? Asks nothing of the
    database but after a lost attempt or a window. Caller holds the execution's lock."""
    grant = execution.grant
    if grant.status != GrantStatus.SPENT:
        about(execution, AlarmKind.WITHOUT_GRANT, now, grant=grant.status)
    if canonical.digest(bytes(grant.revision.canonical)) != grant.action_hash:
        about(execution, AlarmKind.OTHER_BYTES, now, stage="recorded")
    for report in _rivals(execution):
        about(execution, AlarmKind.TWICE, now, fence=report.fence)
    if grant.expires_at <= now:
        close_itself(
            AlarmKind.NEVER_EXECUTED, subject=execution.pk, now=now, code="executed"
        )


def _rivals(execution: Execution) -> Iterator[LateReport]:
    """Successes that earlier attempts reported, of which this is not the same one."""
    if execution.fence < 2 or execution.looked_up:
        return
    rivals = execution.late_reports.filter(status="succeeded", counted=False)
    for report in rivals.exclude(fence=execution.fence):
        if not same_effect(execution, report):
            yield report


def same_effect(execution: Execution, report: LateReport) -> bool:
    """Whether a provider that honours our key answered twice for one effect."""
    tool = execution.grant.revision.known_tool
    keyed = tool.execution_class == ExecutionClass.KEYED
    return keyed and report.result_digest == execution.result_digest


def counted(execution: Execution, effects: int | None, now: datetime) -> None:
    """What a service counts under our reference. Caller holds the execution's lock."""
    if effects is not None and effects > 1:
        about(execution, AlarmKind.TWICE, now, count=effects)


def without_votes(request: ApprovalRequest, now: datetime) -> None:
    """Its recall window is over, and the votes that would authorise it are not there.
    Caller holds the request's lock, and takes no other after this."""
    raise_(
        AlarmKind.WITHOUT_VOTES,
        subject=f"{request.pk} v{request.version}",
        proposal=request.proposal,
        data={"request": request.pk, "version": request.version, "stage": "window"},
        now=now,
    )


def unsaid_without_votes(
    requests: QuerySet[ApprovalRequest],
) -> QuerySet[ApprovalRequest]:
    """Without those whose present version such an alarm was raised about."""
    subject = Concat(
        OuterRef("pk"), Value(" v"), OuterRef("version"), output_field=TextField()
    )
    said = Alarm.objects.filter(kind=AlarmKind.WITHOUT_VOTES, subject=subject)
    return requests.filter(~Exists(said))
