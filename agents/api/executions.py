"""Endpoints for effects that an agent performs itself: redeeming the grant, reporting
the outcome."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from agents import intake, representation
from agents.models import Agent
from agents.schemas import OutcomeIn, ProposalOut, RedeemIn, RedeemOut
from journal import log
from journal.errors import NotFound
from reviews.executions import redeem as redeeming
from reviews.executions.claims import Claim
from reviews.models import Execution
from reviews.tool_services import executors
from reviews.tool_services.executors import Outcome

from .auth import (
    AgentAuth,
    IdempotencyHeader,
    agent_of,
    answered,
    own_proposal,
    replaying,
)

router = Router(auth=AgentAuth(), tags=["agents"])


@router.post("/grants/redeem", response=RedeemOut)
def redeem(
    request: HttpRequest, body: RedeemIn, key: IdempotencyHeader = None
) -> HttpResponse:
    """Redeem the one-use grant of an action that the agent performs itself. `grant` in
    the answer is for the tool's service, which verifies it with the keys at
    `/.well-known/jwks.json`. A repeated call with the same `Idempotency-Key` gets the
    same claim, with `Idempotent-Replayed: true`, until the lease ends. Without a key,
    or with another one, a grant can be redeemed only once."""
    claim = redeeming.redeem(
        token=body.token, agent=agent_of(request).slug, key=intake.checked_key(key)
    )
    return replaying(claim.replayed, JsonResponse(_redeemed(claim)))


def _redeemed(claim: Claim) -> dict[str, Any]:
    call = claim.call
    return {
        "execution": call.execution,
        "tool": call.tool,
        "tool_version": call.tool_version,
        "args": call.args,
        "preconditions": call.preconditions,
        "action_hash": claim.execution.grant.action_hash,
        "idempotency_key": call.idempotency_key,
        "fence": claim.fence,
        "lease_until": representation.stamp(claim.execution.lease_until),
        "grant": call.grant,
    }


@router.post("/executions/{execution_id}/outcome", response=ProposalOut)
def report_outcome(
    request: HttpRequest, execution_id: str, body: OutcomeIn
) -> HttpResponse:
    """Report the outcome of an effect that the agent performed. `fence` and
    `action_hash` must be those of the claim."""
    agent = agent_of(request)
    execution = _own_execution(agent, execution_id)
    redeeming.report(
        execution=execution,
        fence=body.fence,
        action_hash=body.action_hash,
        outcome=_outcome(body),
        actor=log.Actor("agent", agent.slug),
    )
    return answered(
        representation.describe(own_proposal(request, execution.proposal_id))
    )


def _outcome(body: OutcomeIn) -> Outcome:
    """Build the outcome within the limits that hold for every executor's answer."""
    if body.status == "succeeded":
        return executors.succeeded(body.result)
    made = executors.failed if body.status == "failed" else executors.unknown
    return made(body.code, body.detail)


def _own_execution(agent: Agent, execution_id: str) -> Execution:
    execution = (
        Execution.objects.select_related("grant")
        .filter(pk=execution_id, proposal__agent=agent.slug, by_agent=True)
        .first()
    )
    if execution is None:
        raise NotFound
    return execution
