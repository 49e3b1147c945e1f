"""Issuing and revoking grants, together with the executions they allow, under the
conditions of their approvals."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from journal import clock, log
from policies import facts, tools
from policies.documents import ToolDefinition
from policies.models import Queue, StandingGrant
from reviews import transitions
from reviews.choices import ExecutionStatus, GrantStatus
from reviews.models import ApprovalRequest, Execution, Grant, Proposal, Revision
from reviews.models.base import new_grant_id

from . import sequence, uncertain


def compute_idempotency_key(proposal_id: str, action_hash: str) -> str:
    """The idempotency key sent to the tool's service. It depends on the proposal and
    the action hash only, so all attempts share it."""
    material = f"{proposal_id}|{action_hash}".encode()
    return "cs-" + hashlib.sha256(material).hexdigest()[:48]


class ExpectedValue(NamedTuple):
    """A field of the tool's reading, and the value that it must still have."""

    field: str
    value: Any


@dataclass(frozen=True, slots=True)
class GrantConditions:
    """What an approval requires of the execution: not before and not after a time, and
    values that the tool's reader must still give right before the effect."""

    not_before: datetime | None = None
    not_after: datetime | None = None
    expected: tuple[ExpectedValue, ...] = ()

    def as_json(self) -> dict[str, Any] | None:
        """The stored form; None for no condition."""
        if self == NO_CONDITIONS:
            return None
        return {
            "not_before": self.not_before.isoformat() if self.not_before else None,
            "not_after": self.not_after.isoformat() if self.not_after else None,
            "expect": [value._asdict() for value in self.expected],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> GrantConditions:
        if stored is None:
            return NO_CONDITIONS
        before, after = stored["not_before"], stored["not_after"]
        return cls(
            clock.clamp(datetime.fromisoformat(before)) if before else None,
            clock.clamp(datetime.fromisoformat(after)) if after else None,
            tuple(ExpectedValue(**value) for value in stored["expect"]),
        )


NO_CONDITIONS = GrantConditions()


def join_conditions(conditions: Sequence[GrantConditions]) -> GrantConditions:
    """The conditions of several approvals together: the latest start, the earliest end,
    and every expected value."""
    values = [value for approval in conditions for value in approval.expected]
    return GrantConditions(
        max(
            (approval.not_before for approval in conditions if approval.not_before),
            default=None,
        ),
        min(
            (approval.not_after for approval in conditions if approval.not_after),
            default=None,
        ),
        tuple(value for at, value in enumerate(values) if value not in values[:at]),
    )


class _Permit(NamedTuple):
    proposal: Proposal
    revision: Revision
    request: ApprovalRequest | None = None
    announced_in: Queue | None = None
    standing_grant: StandingGrant | None = None
    conditions: GrantConditions = NO_CONDITIONS

    def compute_start(self, now: datetime) -> datetime:
        """When the execution is due and its window begins."""
        return max(now, self.conditions.not_before or now)

    @property
    def definition(self) -> ToolDefinition:
        return tools.load_definition(self.revision.known_tool)


def issue_grant(
    proposal: Proposal,
    revision: Revision,
    *,
    actor: log.Actor,
    now: datetime,
    announced_in: Queue | None = None,
    standing_grant: StandingGrant | None = None,
) -> Execution:
    """Issue the grant of a proposal that needs no approval, and queue its execution.

    The people of the queue `announced_in` are notified. `standing_grant` is what stands
    for the approval, if the proposal took a use of one. The caller is in the
    transaction that creates the proposal.
    """
    permit = _Permit(
        proposal,
        revision,
        announced_in=announced_in,
        standing_grant=standing_grant,
    )
    return _create_grants([permit], actor, now)[0]


def issue_request_grants(
    requests: Sequence[ApprovalRequest],
    *,
    actor: log.Actor,
    now: datetime,
    conditions: Mapping[str, GrantConditions],
) -> list[Execution]:
    """Issue grants for authorised requests, and queue their executions. `conditions`
    has those of each request's approvals together, by request id. The caller is in the
    transaction that authorises them and holds their locks."""
    permits = [
        _Permit(
            request.proposal,
            request.sealed.revision,
            request,
            conditions=conditions[request.pk],
        )
        for request in requests
    ]
    return _create_grants(permits, actor, now)


def _create_grants(
    permits: Sequence[_Permit], actor: log.Actor, now: datetime
) -> list[Execution]:
    by_proposal = {permit.proposal.pk: permit.request for permit in permits}

    def asked(row: Grant | Execution) -> dict[str, Any]:
        request = by_proposal[row.proposal_id]
        return {"request": request.pk, "version": request.version} if request else {}

    granted = [_build_grant(permit, now) for permit in permits]
    transitions.grant.create_many(granted, "issue", actor=actor, now=now, each=asked)
    queued = _build_execution_rows(permits, granted, now)
    transitions.execution.create_many(queued, "queue", actor=actor, now=now, each=asked)
    return queued


def _build_grant(permit: _Permit, now: datetime) -> Grant:
    return Grant(
        id=new_grant_id(),
        proposal=permit.proposal,
        revision=permit.revision,
        action_hash=permit.revision.action_hash,
        issued_at=now,
        expires_at=_compute_window_end(permit, now),
        not_before=permit.conditions.not_before,
        expected=[value._asdict() for value in permit.conditions.expected] or None,
        standing_grant=permit.standing_grant,
    )


def _compute_window_end(permit: _Permit, now: datetime) -> datetime:
    """The execution window covers the first claim and every retry. It does not depend
    on the time that was left to decide, and ends early where an approval says so."""
    end = permit.compute_start(now) + permit.definition.window
    until = permit.conditions.not_after
    if until is not None:  # guard: condition-until
        end = min(end, until)
    return end


def _build_execution_rows(
    permits: Sequence[_Permit], granted: Sequence[Grant], now: datetime
) -> list[Execution]:
    batchable = [permit.request for permit in permits if permit.definition.batchable]
    places = sequence.load_batch_places(
        [request.pk for request in batchable if request is not None]
    )
    return [
        _build_execution(permit, grant, places, now)
        for permit, grant in zip(permits, granted, strict=True)
    ]


def _build_execution(
    permit: _Permit,
    grant: Grant,
    places: Mapping[str, sequence.BatchPlace],
    now: datetime,
) -> Execution:
    place = places.get(permit.request.pk) if permit.request else None
    return Execution(
        proposal=permit.proposal,
        grant=grant,
        batch_id=place.batch if place else None,
        batch_position=place.position if place else None,
        by_agent=permit.definition.by_agent,
        idempotency_key=compute_idempotency_key(permit.proposal.pk, grant.action_hash),
        announced_in=permit.announced_in,
        due_at=permit.compute_start(now),
        queued_at=now,
    )


def revoke_queued(
    proposal: Proposal,
    *,
    actor: log.Actor,
    now: datetime,
    code: str,
    detail: str = "",
) -> bool:
    """Revoke a proposal's queued execution, including one that waits for a retry.

    The execution becomes REFUSED, its grant REVOKED unless it is spent, and its sums
    are released. An execution that predates a restore may have run, so it becomes
    UNKNOWN instead. Returns False when nothing was queued. Raises Conflict when it was
    claimed at the same moment. The caller holds the request's lock if there is one.
    """
    # guard: revoke-queued
    queued = Execution.objects.filter(proposal=proposal, status=ExecutionStatus.QUEUED)
    rows = list(queued.select_related("proposal", "grant__proposal", "grant__revision"))
    for execution in rows:
        doubt = uncertain.find_uncertain_outcome(execution)
        if doubt is not None:
            uncertain.mark_unknown(execution, doubt, now)
        else:
            refuse_execution(execution, code, detail, now, actor)
    return bool(rows)


def refuse_execution(
    execution: Execution,
    code: str,
    detail: str,
    now: datetime,
    actor: log.Actor,
    data: Mapping[str, Any] | None = None,
) -> None:
    """Mark an execution REFUSED, end its grant if it is live and release its sums.
    `data` goes to the log record. The caller holds the execution's lock and knows that
    no attempt has had an effect."""
    if execution.grant.status == GrantStatus.LIVE:
        event = "expire" if code == "window_closed" else "revoke"
        transitions.grant.apply(execution.grant, event, actor=actor, now=now)
    transitions.execution.apply(
        execution,
        "refuse",
        actor=actor,
        now=now,
        changes={
            "lease_until": None,
            "finished_at": now,
            "code": code,
            "detail": detail,
        },
        data=data,
    )
    facts.release_many([execution.proposal_id])
