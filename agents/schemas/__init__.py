"""The schemas of the agents' API (api.md). Bodies with unknown fields are refused."""

from __future__ import annotations

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
    ProposalIn,
    ProposalOut,
    ProposalPage,
    RevisionIn,
)
from .threads import FinishIn, ResumeOut, ThreadOut, ToolOut, WhoamiOut
from .webhooks import LetterData, LetterOut

__all__ = [
    "ARGS_LIMIT",
    "STATE_LIMIT",
    "WORDS_LIMIT",
    "AcknowledgeIn",
    "ActionIn",
    "BatchIn",
    "BatchItemIn",
    "BatchOut",
    "CheckpointIn",
    "FinishIn",
    "LetterData",
    "LetterOut",
    "OutcomeIn",
    "ProposalIn",
    "ProposalOut",
    "ProposalPage",
    "RedeemIn",
    "RedeemOut",
    "ResumeOut",
    "RevisionIn",
    "ThreadOut",
    "ToolOut",
    "WhoamiOut",
]
