"""Issuing and revoking grants, together with the executions they allow."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from journal import log
from policies import facts, tools
from policies.documents import ToolDefinition
from policies.models import Queue
from reviews import transitions
from reviews.choices import ExecutionStatus, GrantStatus
from reviews.models import ApprovalRequest, Execution, Grant, Proposal, Revision
from reviews.models.base import new_grant_id

from . import sequence, uncertain
from .tokens import find, tag, token, token_hash

__all__ = [
    "find",
    "idempotency_key",
    "issue",
    "issue_many",
    "revoke",
    "token",
    "token_hash",
]


def idempotency_key(proposal_id: str, action_hash: str) -> str:
    """The idempotency key sent to the tool's service.

    It depends on the proposal and the action hash only, so all attempts share it.
    """
    material = f"{proposal_id}|{action_hash}".encode()
    return "hp-" + hashlib.sha256(material).hexdigest()[:48]


class _Permit(NamedTuple):
    proposal: Proposal
    revision: Revision
    request: ApprovalRequest | None = None
    announced_in: Queue | None = None

    @property
    def definition(self) -> ToolDefinition:
        return tools.definition(self.revision.known_tool)


def issue(
    proposal: Proposal,
    revision: Revision,
    *,
    actor: log.Actor,
    now: datetime,
    announced_in: Queue | None = None,
) -> Execution:
    """Issue the grant of a proposal that needs no approval, and queue its execution.

    The people of the queue `announced_in` are notified. The caller is in the
    transaction that creates the proposal.
    """
    permit = _Permit(proposal, revision, announced_in=announced_in)
    return _issue([permit], actor, now)[0]


def issue_many(
    requests: Sequence[ApprovalRequest], *, actor: log.Actor, now: datetime
) -> list[Execution]:
    """Issue grants for authorised requests, and queue their executions.

    The caller is in the transaction that authorises them and holds their locks.
    """
    permits = [_Permit(one.proposal, one.sealed.revision, one) for one in requests]
    return _issue(permits, actor, now)


def _issue(
    permits: Sequence[_Permit], actor: log.Actor, now: datetime
) -> list[Execution]:
    by_proposal = {permit.proposal.pk: permit.request for permit in permits}

    def asked(row: Grant | Execution) -> dict[str, Any]:
        request = by_proposal[row.proposal_id]
        return {"request": request.pk, "version": request.version} if request else {}

    granted = [_grant(permit, now) for permit in permits]
    transitions.grant.create_many(granted, "issue", actor=actor, now=now, each=asked)
    queued = _executions(permits, granted, now)
    transitions.execution.create_many(queued, "queue", actor=actor, now=now, each=asked)
    return queued


def _grant(permit: _Permit, now: datetime) -> Grant:
    grant_id = new_grant_id()
    return Grant(
        id=grant_id,
        proposal=permit.proposal,
        revision=permit.revision,
        action_hash=permit.revision.action_hash,
        token_hash=token_hash(tag(grant_id)),
        issued_at=now,
        # The execution window covers the first claim and every retry. It does not
        # depend on the time that was left to decide.
        expires_at=now + permit.definition.window,
    )


def _executions(
    permits: Sequence[_Permit], granted: Sequence[Grant], now: datetime
) -> list[Execution]:
    batchable = [one.request for one in permits if one.definition.batchable]
    places = sequence.places_of([one.pk for one in batchable if one is not None])
    return [
        _execution(permit, grant, places, now)
        for permit, grant in zip(permits, granted, strict=True)
    ]


def _execution(
    permit: _Permit, grant: Grant, places: Mapping[str, sequence.Place], now: datetime
) -> Execution:
    place = places.get(permit.request.pk) if permit.request else None
    return Execution(
        proposal=permit.proposal,
        grant=grant,
        batch_id=place.batch if place else None,
        batch_position=place.position if place else None,
        by_agent=permit.definition.executor.kind == "agent",
        idempotency_key=idempotency_key(permit.proposal.pk, grant.action_hash),
        announced_in=permit.announced_in,
        due_at=now,
        queued_at=now,
    )


def revoke(
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
        doubt = uncertain.of_restore(execution)
        if doubt is not None:
            uncertain.lose(execution, doubt, now)
        else:
            _refuse(execution, actor, now, code=code, detail=detail)
    return bool(rows)


def _refuse(execution: Execution, actor: log.Actor, now: datetime, **why: str) -> None:
    if execution.grant.status == GrantStatus.LIVE:
        transitions.grant.apply(execution.grant, "revoke", actor=actor, now=now)
    transitions.execution.apply(
        execution,
        "refuse",
        actor=actor,
        now=now,
        changes={"finished_at": now, **why},
    )
    facts.release(execution.proposal_id)
