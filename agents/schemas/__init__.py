"""The shapes of the agents' API (api.md). Unknown fields are refused."""

from __future__ import annotations

from .letters import LetterData, LetterOut
from .proposals import BatchOut, ProposalOut, ProposalPage
from .proposing import (
    ARGS_LIMIT,
    STATE_LIMIT,
    WORDS_LIMIT,
    ActionIn,
    BatchIn,
    BatchItemIn,
    CheckpointIn,
    ProposalIn,
    RevisionIn,
)
from .redeeming import AcknowledgeIn, OutcomeIn, RedeemIn, RedeemOut
from .runs import FinishIn, ResumeOut, ThreadOut, ToolOut, WhoamiOut

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
