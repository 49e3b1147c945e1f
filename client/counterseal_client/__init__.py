"""The Python client of Counterseal: call tools through the gate, or propose an action,
wait, and carry on with the outcome.

It needs httpx2 and pydantic. Counterseal itself never imports it.
"""

from __future__ import annotations

from .calls import Backoff
from .errors import (
    ApiError,
    CountersealError,
    FieldError,
    InvalidAnswer,
    InvalidArguments,
    Unreachable,
)
from .files import File
from .gate import AsyncGate, Gate
from .gated_tools import AsyncGatedTool, GatedTool
from .models import (
    FINAL_STATUSES,
    ApprovalRequest,
    Checkpoint,
    Claim,
    DailyMoney,
    DailyProposals,
    Decision,
    Execution,
    Grant,
    Identity,
    Message,
    Proposal,
    ProposalPage,
    Question,
    Rule,
    Ruling,
    StepCount,
    ThreadState,
    ToolDeclaration,
)
from .operations import CheckpointIn, Details, ThreadResult, encode_blob
from .questions import (
    QuestionDeclined,
    QuestionError,
    QuestionExpired,
    QuestionOpen,
    QuestionWithdrawn,
    build_ask_tool,
    build_async_ask_tool,
)
from .tool_errors import (
    ApprovalPending,
    EffectFailed,
    NothingHappened,
    NotPerformed,
    OutcomeUnknown,
    Rejected,
    ReturnedForRevision,
    ToolError,
    ToolNotDeclared,
)
from .tools import ToolRisk, get_claim
from .webhooks import Event, NotVerified

__all__ = [
    "FINAL_STATUSES",
    "ApiError",
    "ApprovalPending",
    "ApprovalRequest",
    "AsyncGate",
    "AsyncGatedTool",
    "Backoff",
    "Checkpoint",
    "CheckpointIn",
    "Claim",
    "CountersealError",
    "DailyMoney",
    "DailyProposals",
    "Decision",
    "Details",
    "EffectFailed",
    "Event",
    "Execution",
    "FieldError",
    "File",
    "Gate",
    "GatedTool",
    "Grant",
    "Identity",
    "InvalidAnswer",
    "InvalidArguments",
    "Message",
    "NotPerformed",
    "NotVerified",
    "NothingHappened",
    "OutcomeUnknown",
    "Proposal",
    "ProposalPage",
    "Question",
    "QuestionDeclined",
    "QuestionError",
    "QuestionExpired",
    "QuestionOpen",
    "QuestionWithdrawn",
    "Rejected",
    "ReturnedForRevision",
    "Rule",
    "Ruling",
    "StepCount",
    "ThreadResult",
    "ThreadState",
    "ToolDeclaration",
    "ToolError",
    "ToolNotDeclared",
    "ToolRisk",
    "Unreachable",
    "build_ask_tool",
    "build_async_ask_tool",
    "encode_blob",
    "get_claim",
]
