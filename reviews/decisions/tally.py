"""Tally the votes after they are recorded: the request stays open, becomes recallable
for a while, or is authorized."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from journal import failpoints, log
from journal.writes import NO_GUARD, Guard
from reviews import quorum, transitions
from reviews.grants import grants
from reviews.grants.grants import GrantConditions
from reviews.models import ApprovalRequest

from .case import DecisionContext
from .votes import StepVote


def tally_votes(votes: Sequence[StepVote]) -> None:
    """Authorize each request whose steps are all complete, or start its recall window;
    hide the others from their voters. Caller recorded the votes."""
    done = []
    for case, place in votes:
        given = case.filled if place is None else [*case.filled, place]
        if quorum.is_complete(case.version.steps, given):
            done.append(case)
        else:
            hide_from_voter(case)
    for seconds in sorted({case.version.recall_seconds for case in done}):
        _authorize_or_hold(
            [case for case in done if case.version.recall_seconds == seconds]
        )


def _authorize_or_hold(cases: Sequence[DecisionContext]) -> None:
    """Authorize the requests at once, or start their recall window. All of them have
    the same window."""
    first, rows = cases[0], [case.request for case in cases]
    actor, now = first.submission.actor, first.now
    seconds = first.version.recall_seconds
    if seconds == 0:
        authorize_requests(
            rows,
            actor=actor,
            now=now,
            guard=UNCHANGED_GUARD,
            conditions={case.request.pk: case.conditions for case in cases},
        )
        return
    until = now + timedelta(seconds=seconds)
    transitions.request.apply_many(
        rows,
        "hold",
        actor=actor,
        now=now,
        changes={"recall_until": until},
        guard=UNCHANGED_GUARD,
    )


def hide_from_voter(case: DecisionContext) -> None:
    """Remove a request that is still open from the lists of the person who voted."""
    request, voter = case.request, case.submission.person.public_id
    if voter not in request.closed_to:
        request.closed_to = [*request.closed_to, voter]
        rows = ApprovalRequest.objects.filter(pk=request.pk)
        rows.update(closed_to=request.closed_to)


# The request still has the version and bytes that were read, and a pending one is in
# time by the database's clock. A recallable request has no deadline.
# guard: deadline-in-write
UNCHANGED_GUARD = Guard(
    same=("version", "action_hash"),
    condition="(stored.expires_at > clock_timestamp() OR stored.status <> 'pending')",
)


def authorize_requests(
    requests: Sequence[ApprovalRequest],
    *,
    actor: log.Actor,
    now: datetime,
    conditions: Mapping[str, GrantConditions],
    guard: Guard = NO_GUARD,
) -> None:
    """Authorize requests of one status: issue their grants under the conditions of
    their approvals, by request id, and queue the executions. Caller holds the locks of
    the requests."""
    transitions.request.apply_many(
        requests,
        "authorize",
        actor=actor,
        now=now,
        changes={"settled_at": now, "recall_until": None},
        guard=guard,
        each=lambda row: {"policy": row.sealed.revision.policy_number},
    )
    grants.issue_request_grants(requests, actor=actor, now=now, conditions=conditions)
    for request in requests:
        failpoints.point("grant_uncommitted", request.pk)
