"""The only place that locks the gate's rows. Order: Thread, ApprovalRequest by pk,
advisory keys, Grant, Execution; the outermost first, never backwards (house.md)."""

from __future__ import annotations

from django.db.models import QuerySet

from journal.errors import NotFound

from .models import ApprovalRequest, Execution, Grant


def _locked_requests() -> QuerySet[ApprovalRequest]:
    # no_key: an ordinary FOR UPDATE would block the inserts of votes and versions.
    return ApprovalRequest.objects.select_related(
        "proposal", "queue"
    ).select_for_update(of=("self",), no_key=True)


def approval_request(pk: str) -> ApprovalRequest:
    """The request, locked until the transaction ends. Raises NotFound."""
    try:
        return _locked_requests().get(pk=pk)
    except ApprovalRequest.DoesNotExist:
        raise NotFound from None


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
