"""What follows once a vote is written: the question stays open, can be recalled for a
while, or is answered yes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Q

from journal import clock, log

from . import grants, quorum, transitions
from .cases import Case
from .choices import RequestStatus
from .models import ApprovalRequest


def tally(case: Case, given: Sequence[int]) -> None:
    """Close the question once every step has its people. Caller wrote the vote, and
    `given` are all places that are filled, theirs too."""
    if not quorum.complete(case.version.steps, given):
        close_to_voter(case)
        return
    seconds = case.version.recall_seconds
    if seconds == 0:
        authorize(case.request, actor=case.said.actor, now=case.now, guard=still(case))
        return
    until = case.now + timedelta(seconds=seconds)
    transitions.request.apply(
        case.request,
        "hold",
        actor=case.said.actor,
        now=case.now,
        changes={"recall_until": until},
        guard=still(case),
    )


def close_to_voter(case: Case) -> None:
    """They voted and it still waits: lists no longer offer it to them."""
    request, voter = case.request, case.said.person.public_id
    if voter not in request.closed_to:
        request.closed_to = [*request.closed_to, voter]
        found = ApprovalRequest.objects.filter(pk=request.pk)
        found.update(closed_to=request.closed_to)


def still(case: Case) -> Q:
    """The decision's guard: version, bytes and the deadline by the database's clock."""
    return unchanged(case.request)


def unchanged(request: ApprovalRequest) -> Q:
    """That the row still is as it was read, and in time."""
    guard = Q(version=request.version, action_hash=request.action_hash)
    if request.status == RequestStatus.PENDING:
        guard &= Q(expires_at__gt=clock.ClockTimestamp())
    return guard


def authorize(
    request: ApprovalRequest,
    *,
    actor: log.Actor,
    now: datetime,
    guard: Q | None = None,
) -> None:
    """The question is answered yes: grant and execution. Caller holds its lock."""
    revision = request.sealed.revision
    transitions.request.apply(
        request,
        "authorize",
        actor=actor,
        now=now,
        changes={"settled_at": now, "recall_until": None},
        guard=guard,
        policy=revision.policy_number,
    )
    grants.issue(request.proposal, revision, actor=actor, now=now, request=request)
