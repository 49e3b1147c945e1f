"""Endpoints for effects that an agent performs itself: redeeming the grant, reporting
the outcome."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from agents import intake, representation
from agents.models import Agent
from agents.schemas.executions import OutcomeIn, RedeemIn, RedeemOut
from agents.schemas.proposals import ProposalOut
from journal import log
from journal.errors import NotFound
from reviews.executions import redeem as redemption
from reviews.executions.claims import Claim
from reviews.models import Execution
from reviews.tool_services import executors
from reviews.tool_services.executors import EffectOutcome

from .auth import (
    AgentAuth,
    IdempotencyHeader,
    get_calling_agent,
    mark_replayed,
    respond_with_proposal,
)

router = Router(auth=AgentAuth(), tags=["agents"], by_alias=True)


@router.post("/grants/redeem", response=RedeemOut)
def redeem(
    request: HttpRequest, body: RedeemIn, key: IdempotencyHeader = None
) -> HttpResponse:
    """Redeem the one-use grant of an action that the agent performs itself. `grant` in
    the response is for the tool's service, which verifies it with the keys at
    `/.well-known/jwks.json`. A repeated call with the same `Idempotency-Key` returns
    the same claim, with `Idempotent-Replayed: true`, until the lease ends. Without a
    key, or with another one, a grant can be redeemed only once."""
    claim = redemption.redeem_grant(
        token=body.token,
        agent=get_calling_agent(request).slug,
        key=intake.parse_key_header(key),
    )
    return mark_replayed(claim.replayed, JsonResponse(_build_claim_json(claim)))


def _build_claim_json(claim: Claim) -> dict[str, Any]:
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
        "lease_until": representation.format_timestamp(claim.execution.lease_until),
        "grant": call.grant,
    }


@router.post("/executions/{execution_id}/outcome", response=ProposalOut)
def report_outcome(
    request: HttpRequest, execution_id: str, body: OutcomeIn
) -> HttpResponse:
    """Report the outcome of an effect that the agent performed. `fence` and
    `action_hash` must be those of the claim."""
    agent = get_calling_agent(request)
    execution = _load_own_execution(agent, execution_id)
    redemption.report_outcome(
        execution=execution,
        fence=body.fence,
        action_hash=body.action_hash,
        outcome=_parse_outcome(body),
        actor=log.Actor("agent", agent.slug),
    )
    return respond_with_proposal(request, execution.proposal_id)


def _parse_outcome(body: OutcomeIn) -> EffectOutcome:
    """Build the outcome within the limits that hold for every executor's answer."""
    if body.status == "succeeded":
        return executors.build_success(body.result)
    made = (
        executors.build_failure if body.status == "failed" else executors.build_unknown
    )
    return made(body.code, body.detail)


def _load_own_execution(agent: Agent, execution_id: str) -> Execution:
    execution = (
        Execution.objects.select_related("grant")
        .filter(pk=execution_id, proposal__agent=agent.slug, by_agent=True)
        .first()
    )
    if execution is None:
        raise NotFound
    return execution
