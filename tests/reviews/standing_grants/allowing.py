"""A policy that asks for every tag and lets people allow tags in advance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.models import StandingGrant
from reviews.models import ApprovalRequest, Execution, Proposal
from reviews.standing_grants import issuance
from tests import factories
from tests.conftest import Gate
from tests.factories import propose

ASKS: dict[str, Any] = {
    "id": "tag.asks",
    "text": "Every tag is asked for.",
    "tools": ["tag"],
    "when": "true",
    "then": {"tier": "approve"},
}


def allow_tags(
    gate: Gate,
    *rules: dict[str, Any],
    parts: Mapping[str, Any] | None = None,
    **terms: Any,
) -> None:
    """Activate the policy; `rules` are further ones about tags, `parts` further parts
    of the tool."""
    document = factories.document_of_tests()
    document["tools"]["tag"] |= parts or {}
    document["tools"]["tag"]["standing_grant"] = terms
    document["rules"] += [ASKS, *rules]
    factories.policy(gate.people, document)


def tag(gate: Gate, label: str = "a", **fields: Any) -> Proposal:
    proposal: Proposal = propose(gate.agent, "tag", args={"label": label}, **fields)
    return proposal


def issue(gate: Gate, request: ApprovalRequest, **fields: Any) -> StandingGrant:
    fields = {"person": gate.sue, "reason": "fifty tags of one ticket", **fields}
    return issuance.issue_standing_grant(request_id=request.pk, **fields)


def is_asked(proposal: Proposal) -> bool:
    return ApprovalRequest.objects.filter(proposal=proposal).exists()


def execution_of(proposal: Proposal) -> Execution:
    return Execution.objects.select_related("grant").get(proposal=proposal)
