"""Payloads of webhook events: Counterseal's own ids and facts, no text that an agent, a
tool or a reviewer wrote."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from agents import representation
from agents.schemas.webhooks import WebhookEventOut
from journal import canonical, clock
from journal.models import OutboxMessage
from reviews.choices import (
    EXECUTION_SPECS,
    REQUEST_SPECS,
    UNGRANTED,
    ExecutionStatus,
    ReasonCode,
    RequestStatus,
)
from reviews.grants import uncertain
from reviews.models import ApprovalRequest, Execution, Proposal

REQUEST_EVENTS = frozenset(
    {
        "request.opened",
        "request.escalated",
        "request.asked",
        "request.answered",
        "request.sent_back",
    }
)
WebhookFacts = Mapping[str, Any]


class UnfitPayload(Exception):
    """A payload violates the published schema. Its text names the faulty fields, not
    their values."""


def compute_event_id(message: OutboxMessage) -> str:
    """Return the event's id, the same for every endpoint and every attempt. For an
    outcome it is the id to acknowledge."""
    proposal, facts = message.subject, message.facts
    if facts["event"] in REQUEST_EVENTS:
        return representation.compute_request_event_id(
            proposal, facts["event"], facts["version"], facts.get("round", 0)
        )
    if "request" in facts:
        return representation.compute_settled_id(proposal)
    if facts["status"] == ExecutionStatus.QUEUED:
        again = datetime.fromisoformat(facts["again"])
        return representation.compute_offered_id(proposal, facts["fence"], again)
    return representation.compute_ended_id(proposal, facts["status"], facts["fence"])


def build_payload(message: OutboxMessage, proposal: Proposal) -> dict[str, Any]:
    """Build the payload from the facts that the message recorded when the event
    happened, not from the proposal's current state."""
    facts, settled = message.facts, None
    if "request" in facts and facts["event"] not in REQUEST_EVENTS:
        requests = ApprovalRequest.objects.select_related("proposal")
        settled = requests.get(pk=facts["request"])
    outcome = compute_event_id(message) if _is_outcome(facts, proposal) else None
    specs = REQUEST_SPECS if "request" in facts else EXECUTION_SPECS
    data = {
        "outcome": outcome,
        "proposal": proposal.pk,
        "thread": proposal.thread,
        "tool": proposal.tool_name,
        "revision": facts["revision"],
        "action_hash": facts["action_hash"],
        "status": specs[facts["status"]].api_word,
        "request": _build_request(facts),
        "decision": _build_decision(settled, proposal),
        "execution": _build_execution(facts),
    }
    if "round" in facts:
        data["round"] = facts["round"]
    if settled is not None and _may_have_run(settled):
        data["may_have_run"] = True
    timestamp = clock.format_instant(datetime.fromisoformat(facts["at"]))
    return {"type": facts["event"], "timestamp": timestamp, "data": data}


def _may_have_run(request: ApprovalRequest) -> bool:
    """Whether it was restored from a backup and ended without an approval."""
    return request.status in UNGRANTED and uncertain.may_have_run_uncached(request)


def encode_payload(payload: Mapping[str, Any]) -> bytes:
    """Return the payload as canonical bytes. Raises UnfitPayload."""
    try:
        WebhookEventOut.model_validate(payload, strict=True)
        return canonical.encode(dict(payload))
    except (ValidationError, ValueError) as error:
        raise UnfitPayload(_describe_faults(error)) from error


def _describe_faults(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return "not JSON"
    places = (".".join(map(str, fault["loc"])) for fault in error.errors())
    return ", ".join(dict.fromkeys(places))[:200]


def _is_outcome(facts: WebhookFacts, proposal: Proposal) -> bool:
    """Whether the event gives the agent something to act upon. A granted request does
    only when the agent itself redeems the grant."""
    if facts["event"] in REQUEST_EVENTS:
        return False
    if facts["status"] != RequestStatus.AUTHORIZED:
        return True
    return Execution.objects.filter(proposal=proposal, by_agent=True).exists()


def _build_request(facts: WebhookFacts) -> dict[str, Any] | None:
    if "request" not in facts:
        return None
    return {"id": facts["request"], "version": facts["version"]}


def _build_execution(facts: WebhookFacts) -> dict[str, Any] | None:
    if "execution" not in facts:
        return None
    code = facts["code"] or None
    return {"id": facts["execution"], "status": facts["status"], "code": code}


def _build_decision(
    request: ApprovalRequest | None, proposal: Proposal
) -> dict[str, Any] | None:
    """The agent reads a person's own words with the proposal."""
    if request is None:
        return None
    decision = representation.build_decision(request, proposal.current)
    if decision is None:
        return None
    known = decision["reason_code"] in set(ReasonCode)
    return {
        "verdict": decision["verdict"],
        "reason_code": decision["reason_code"] if known else None,
        "by_role": decision["by_role"],
        "decided_at": decision["decided_at"],
    }
