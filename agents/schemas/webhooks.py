"""Schemas of the webhook events that an agent's endpoint receives."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from .types import (
    ExecutionStatusName,
    ProposalStatusName,
    Sha256Text,
    Timestamp,
    VerdictName,
)


class WebhookEventRequest(BaseModel):
    id: str
    version: int


class WebhookEventDecision(BaseModel):
    verdict: VerdictName
    reason_code: str | None
    by_role: str
    decided_at: Timestamp


class WebhookEventExecution(BaseModel):
    id: str
    status: ExecutionStatusName
    code: str | None


class WebhookEventData(BaseModel):
    """IDs and facts of the event. `outcome` is the id to acknowledge, null while the
    agent cannot act on the result."""

    outcome: str | None
    proposal: str
    thread: str
    tool: str
    revision: int
    action_hash: Sha256Text
    status: ProposalStatusName
    request: WebhookEventRequest | None
    decision: WebhookEventDecision | None
    execution: WebhookEventExecution | None
    # The round of the message in the proposal's `messages`; only with request.asked,
    # request.answered and request.sent_back.
    round: int | None = None
    # As in `ProposalOut`; sent only when it is true.
    may_have_run: bool = False


class WebhookEventOut(BaseModel):
    """A webhook event, in the form of Standard Webhooks."""

    type: Literal[
        "proposal.settled",
        "proposal.executed",
        "request.opened",
        "request.escalated",
        "request.asked",
        "request.answered",
        "request.sent_back",
        "execution.unknown",
    ]
    timestamp: Timestamp
    data: WebhookEventData
