"""The only place that locks the gate's rows. Order: Batch, Repair, Thread,
ApprovalRequest by pk, a person's leases (advisory), Lease, keys of sums (advisory),
Grant, Execution, Alarm (advisory, then its row); the outermost first, never
backwards (house.md). What halts a batch is a guarded update of its row by whoever
holds an execution: nobody who holds a batch waits for one. Whoever writes a mail holds
no row."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager

from django.db.models import QuerySet

from journal.errors import NotFound
from policies import locks as policy_locks

from .choices import AlarmStatus, BatchStatus
from .models import (
    Alarm,
    ApprovalRequest,
    Batch,
    Execution,
    Export,
    Grant,
    Lease,
    Repair,
)


def _locked_requests() -> QuerySet[ApprovalRequest]:
    # no_key: an ordinary FOR UPDATE would block the inserts of votes and versions.
    # guard: request-lock
    return ApprovalRequest.objects.select_related(
        "proposal", "queue"
    ).select_for_update(of=("self",), no_key=True)


def approval_request(pk: str) -> ApprovalRequest:
    """The request, locked until the transaction ends. Raises NotFound."""
    try:
        return _locked_requests().get(pk=pk)
    except ApprovalRequest.DoesNotExist:
        raise NotFound from None


def approval_requests(pks: Iterable[str]) -> dict[str, ApprovalRequest]:
    """Many of them by pk, locked in that order; what is not there is left out."""
    rows = _locked_requests().filter(pk__in=list(pks)).order_by("pk")
    return {row.pk: row for row in rows}


def request_of(proposal: str) -> ApprovalRequest | None:
    """The proposal's request, locked; None when it never needed one."""
    return _locked_requests().filter(proposal_id=proposal).first()


def requests_due(
    queryset: QuerySet[ApprovalRequest],
) -> QuerySet[ApprovalRequest]:
    """Rows of a sweep that nobody else holds, locked in the order of their pk."""
    return (
        queryset.select_related("proposal", "queue")
        .order_by("pk")
        .select_for_update(of=("self",), no_key=True, skip_locked=True)
    )


def requests_in_order(
    queryset: QuerySet[ApprovalRequest],
) -> QuerySet[ApprovalRequest]:
    """All of these rows, locked in the order of their pk."""
    return queryset.order_by("pk").select_for_update(of=("self",), no_key=True)


def deadlines(*, shared: bool = False) -> None:
    """Taken before any row by whoever changes which clocks stand still, and shared by
    whoever ends what is overdue."""
    if shared:
        policy_locks.deadlines_shared()
    else:
        policy_locks.deadlines()


def leases_of(person: str) -> None:
    """One taking at a time for this person, so that they are counted rightly."""
    policy_locks.leases(person)


def mails_to(person: str) -> AbstractContextManager[None]:
    """One mail of what was gathered for this person at a time. Caller holds no
    transaction. Raises OperationalError when another has it too long."""
    return policy_locks.mails(person)


def lease(request: str) -> Lease | None:
    """Who holds a request, locked; None when nobody ever did."""
    return leases([request]).get(request)


def leases(requests: Collection[str]) -> dict[str, Lease]:
    """Who holds each of these, locked in the order of their pk; without those that
    nobody ever held."""
    rows = _locked_leases().filter(pk__in=requests).order_by("pk")
    return {row.pk: row for row in rows}


def leases_due(queryset: QuerySet[Lease]) -> QuerySet[Lease]:
    """Leases that nobody is at just now, locked: whoever frees several passes over
    the others, so that two who make room never wait for one another."""
    return queryset.select_related("request__proposal", "holder").select_for_update(
        of=("self",), no_key=True, skip_locked=True
    )


def _locked_leases() -> QuerySet[Lease]:
    return Lease.objects.select_related(
        "request__proposal", "holder"
    ).select_for_update(of=("self",), no_key=True)


def batch(pk: str) -> Batch:
    """The batch, locked until the transaction ends. Raises NotFound."""
    rows = Batch.objects.select_related("tool", "queue")
    try:
        return rows.select_for_update(of=("self",), no_key=True).get(pk=pk)
    except Batch.DoesNotExist:
        raise NotFound from None


def batch_forming(key: str) -> Batch | None:
    """The batch of this key that still takes members, locked; None without one."""
    rows = Batch.objects.filter(key=key, status=BatchStatus.FORMING)
    return rows.select_for_update(of=("self",), no_key=True).first()


def export(pk: str) -> Export:
    """An export of the log, locked, so that one job writes it. Raises NotFound."""
    rows = Export.objects.select_related("person")
    try:
        return rows.select_for_update(of=("self",), no_key=True).get(pk=pk)
    except Export.DoesNotExist:
        raise NotFound from None


def repair(pk: str) -> Repair:
    """A repair, locked before whatever it is about. Raises NotFound."""
    try:
        return repairs_due(Repair.objects.filter(pk=pk), skip_locked=False).get()
    except Repair.DoesNotExist:
        raise NotFound from None


def repairs_due(
    queryset: QuerySet[Repair], *, skip_locked: bool = True
) -> QuerySet[Repair]:
    """Rows of a sweep that nobody is at just now, locked in the order of their pk."""
    return queryset.order_by("pk").select_for_update(
        of=("self",), no_key=True, skip_locked=skip_locked
    )


def executions_due(queryset: QuerySet[Execution]) -> QuerySet[Execution]:
    """Lock these without their grants; rows that somebody else holds are left out. For
    a sweep that changes nothing which either says."""
    return queryset.select_for_update(of=("self",), no_key=True, skip_locked=True)


# guard: execution-lock
def execution(pk: str) -> Execution:
    """An execution with its grant, both locked, the grant first. Raises NotFound."""
    grants = Grant.objects.select_related("proposal", "revision__tool")
    try:
        grant = grants.select_for_update(of=("self",), no_key=True).get(execution=pk)
    except Grant.DoesNotExist:
        raise NotFound from None
    row = Execution.objects.select_for_update(of=("self",), no_key=True).get(pk=pk)
    row.grant = grant
    return row


def alarm(pk: int) -> Alarm:
    """The alarm, locked until the transaction ends. Raises NotFound."""
    try:
        return _locked_alarms().get(pk=pk)
    except Alarm.DoesNotExist:
        raise NotFound from None


def standing_alarm(kind: str, subject: str) -> Alarm | None:
    """The alarm of this kind about this that nobody has closed, locked; None without
    one, and then nobody else raises it until the transaction ends."""
    policy_locks.alarm(f"{kind}|{subject}")
    standing = _locked_alarms().filter(kind=kind, subject=subject)
    return standing.exclude(status=AlarmStatus.CLOSED).first()


def _locked_alarms() -> QuerySet[Alarm]:
    return Alarm.objects.select_related("proposal").select_for_update(
        of=("self",), no_key=True
    )
