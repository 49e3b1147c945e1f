"""The light client of Holdpoint: propose an action, wait, carry on with the outcome.

It needs httpx2 and nothing else. Holdpoint itself never imports it.
"""

from __future__ import annotations

from .client import CheckpointIn, Client, Details, pack
from .errors import ApiError, HoldpointError, Unreachable
from .models import (
    FINAL,
    Checkpoint,
    Decision,
    Execution,
    FieldError,
    Grant,
    Message,
    Proposal,
    Redeemed,
    Request,
    Resume,
    Rule,
    StepCount,
)
from .transport import Backoff
from .webhooks import Event, NotVerified

__all__ = [
    "FINAL",
    "ApiError",
    "Backoff",
    "Checkpoint",
    "CheckpointIn",
    "Client",
    "Decision",
    "Details",
    "Event",
    "Execution",
    "FieldError",
    "Grant",
    "HoldpointError",
    "Message",
    "NotVerified",
    "Proposal",
    "Redeemed",
    "Request",
    "Resume",
    "Rule",
    "StepCount",
    "Unreachable",
    "pack",
]
