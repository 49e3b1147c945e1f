"""The schemas of the agents' API. A body with an unknown field is refused, so that a
misspelt field is never ignored."""

from __future__ import annotations

from .authzen import (
    AccessAction,
    AccessActor,
    AccessClient,
    AccessContext,
    AccessRequestIn,
    AccessResource,
    AccessSubject,
    ApprovalReference,
    DenialIn,
    EvaluationIn,
    EvaluationOut,
    TaskOut,
    TaskResponse,
)
from .executions import AcknowledgeIn, OutcomeIn, RedeemIn, RedeemOut
from .proposals import (
    ARGS_LIMIT,
    STATE_LIMIT,
    WORDS_LIMIT,
    ActionIn,
    BatchIn,
    BatchItemIn,
    BatchOut,
    CheckpointIn,
    MessageIn,
    ProposalIn,
    ProposalOut,
    ProposalPage,
    RevisionIn,
)
from .threads import FinishIn, ResumeOut, ThreadOut, ToolOut, WhoamiOut
from .webhooks import WebhookEventData, WebhookEventOut

__all__ = [
    "ARGS_LIMIT",
    "STATE_LIMIT",
    "WORDS_LIMIT",
    "AccessAction",
    "AccessActor",
    "AccessClient",
    "AccessContext",
    "AccessRequestIn",
    "AccessResource",
    "AccessSubject",
    "AcknowledgeIn",
    "ActionIn",
    "ApprovalReference",
    "BatchIn",
    "BatchItemIn",
    "BatchOut",
    "CheckpointIn",
    "DenialIn",
    "EvaluationIn",
    "EvaluationOut",
    "FinishIn",
    "MessageIn",
    "OutcomeIn",
    "ProposalIn",
    "ProposalOut",
    "ProposalPage",
    "RedeemIn",
    "RedeemOut",
    "ResumeOut",
    "RevisionIn",
    "TaskOut",
    "TaskResponse",
    "ThreadOut",
    "ToolOut",
    "WebhookEventData",
    "WebhookEventOut",
    "WhoamiOut",
]
