"""Evaluations: a denial that can be requested, and the permit of an approved action.

An evaluation alone permits nothing, also where the policy asks nobody: the effect would
have no proposal, so no sum would count it and nothing would keep it from happening
twice. The access request of such an action is approved at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings

from agents import intake, representation
from agents.models import Agent
from agents.proposals import ProposalInput, build_proposed_action
from agents.schemas.authzen import EvaluationIn
from journal import clock
from journal.errors import AgentStopped, DomainError, ToolNotAllowed
from journal.operations import operation
from policies.choices import Tier
from reviews.governance.ruling import Ruling, build_policy_refusal, govern

from . import approvals, binding_tokens, entities
from .approvals import Approval, NextAction
from .entities import AccessTuple
from .errors import ApprovalOutOfScope, ApprovalUnverifiable

FORBIDDEN = NextAction("policy_denied", "none")
REQUESTABLE = NextAction("approval_required", "request")


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """A decision and its context. `attempt` is what the log records: an evaluation of
    what this agent may not do, or of an approval that is not its own."""

    allowed: bool
    context: Mapping[str, Any]
    attempt: DomainError | None = None

    def build_json(self) -> dict[str, Any]:
        return {"decision": self.allowed, "context": dict(self.context)}


@dataclass(frozen=True, slots=True)
class _Evaluation:
    agent: Agent
    access: AccessTuple
    id: str = field(default_factory=binding_tokens.create_evaluation_id)
    now: datetime = field(default_factory=clock.now)

    def build_context(self, **members: Any) -> dict[str, Any]:
        return {
            "evaluation_id": self.id,
            "evaluated_at": representation.format_timestamp(self.now),
            **members,
        }

    def build_denial(
        self,
        answer: NextAction,
        *,
        attempt: DomainError | None = None,
        **members: Any,
    ) -> AccessDecision:
        denial: dict[str, Any] = {
            "reason": answer.reason,
            "next_action": answer.next_action,
        }
        if answer.retry_after is not None:
            denial["retry_after"] = answer.retry_after
        if attempt is not None:
            faults = [
                f"{fault['path']}: {fault['message']}" for fault in attempt.errors
            ]
            denial["reason_user"] = {"403": " ".join([attempt.detail, *faults])}
        context = self.build_context(**denial, **members)
        return AccessDecision(False, context, attempt)


def evaluate_access(agent: Agent, body: EvaluationIn) -> AccessDecision:
    """Evaluate a tuple, or evaluate it again with an approval in its context. Changes
    nothing. Raises InvalidInput, InvalidArgs, TooLarge, AgentRateLimited. Caller holds
    no transaction: the tool's reader is asked."""
    entities.check_actor(agent, body)
    evaluation = _Evaluation(agent, entities.build_access_tuple(body))
    reference = body.context.approval
    if reference is None:
        return _evaluate_request(evaluation)
    approval = approvals.find_approval(agent.slug, reference)
    if approval is None:
        answer = NextAction(ApprovalUnverifiable.code, "none")
        return evaluation.build_denial(answer, attempt=ApprovalUnverifiable())
    return _evaluate_approval(evaluation, approval)


def _evaluate_request(evaluation: _Evaluation) -> AccessDecision:
    """Deny a tuple that has no approval, and say whether one can be requested."""
    agent, access = evaluation.agent, evaluation.access
    try:
        with entities.rename_paths(access):
            body = entities.build_proposal(agent, access, evaluation.id)
            asked = intake.build_proposal_input(agent, body)
            ruling = _preview_ruling(evaluation, asked)
    except (AgentStopped, ToolNotAllowed) as error:
        return evaluation.build_denial(NextAction(error.code, "none"), attempt=error)
    if ruling.tier is Tier.BLOCK:
        return evaluation.build_denial(FORBIDDEN, attempt=build_policy_refusal(ruling))
    request = binding_tokens.build_access_request(
        access, agent.slug, evaluation.id, evaluation.now
    )
    return evaluation.build_denial(REQUESTABLE, access_request=request)


@operation(entry="evaluate_access", writes="none: it only reads")
def _preview_ruling(evaluation: _Evaluation, asked: ProposalInput) -> Ruling:
    """What the policy says at this moment. Nothing is locked or written; reading the
    sums needs a transaction."""
    action = build_proposed_action(evaluation.agent, asked, evaluation.id)
    return govern(action, now=evaluation.now, policy=asked.policy, firmly=False)


def _evaluate_approval(evaluation: _Evaluation, approval: Approval) -> AccessDecision:
    if not approvals.covers_access(approval, evaluation.access):
        answer = NextAction(ApprovalOutOfScope.code, "request")
        return _deny_approval(evaluation, answer, ApprovalOutOfScope())
    described = representation.build_proposal_json(approval.grant.proposal)
    refusal = approvals.find_refusal(approval, described, evaluation.now)
    if refusal is not None:
        return _deny_approval(evaluation, refusal)
    until = representation.format_timestamp(approval.grant.expires_at)
    return AccessDecision(
        True,
        evaluation.build_context(
            approval={"id": approval.grant.pk, "approved_until": until},
            obligations=[_build_redeem_obligation(described["grant"])],
        ),
    )


def _deny_approval(
    evaluation: _Evaluation, answer: NextAction, attempt: DomainError | None = None
) -> AccessDecision:
    """Deny a tuple whose approval does not permit it. Where a new request is the next
    action, the denial can be requested; where it cannot, nothing is left to do."""
    if answer.next_action != "request":
        return evaluation.build_denial(answer, attempt=attempt)
    fresh = _evaluate_request(evaluation)
    request = fresh.context.get("access_request")
    if request is None:
        last = NextAction(answer.reason, "none")
        return evaluation.build_denial(last, attempt=attempt or fresh.attempt)
    return evaluation.build_denial(answer, attempt=attempt, access_request=request)


def _build_redeem_obligation(grant: Mapping[str, Any]) -> dict[str, Any]:
    """The obligation of a permit: redeem the grant right before the effect. A caller
    that does not know it must treat the permit as a denial (AuthZEN Obligations
    Profile, section "custom")."""
    return {
        "id": "redeem",
        "type": "custom",
        "properties": {
            "vendor": "counterseal",
            "action": "redeem_grant",
            "endpoint": f"{settings.COUNTERSEAL.base_url}/api/v1/grants/redeem",
            **grant,
        },
    }
