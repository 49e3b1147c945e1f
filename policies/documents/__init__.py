"""The policy document: what an administrator writes, checked as a whole. Pure.

`parse` is the only way to a `Document`; what it accepts can be evaluated.
"""

from __future__ import annotations

from .definitions import (
    DEFAULT_FLOOR,
    USUAL_WINDOW,
    AgentTarget,
    Balance,
    Batch,
    CallableTarget,
    CallableVerifier,
    EffectClass,
    Figure,
    Limit,
    LookUp,
    MoneyField,
    Profile,
    Reversal,
    StepSpec,
    ToolDefinition,
    WebhookTarget,
)
from .document import RESERVED, Desk, Document, Measure, Rule, Then
from .loading import InvalidPolicy, parse

__all__ = [
    "DEFAULT_FLOOR",
    "RESERVED",
    "USUAL_WINDOW",
    "AgentTarget",
    "Balance",
    "Batch",
    "CallableTarget",
    "CallableVerifier",
    "Desk",
    "Document",
    "EffectClass",
    "Figure",
    "InvalidPolicy",
    "Limit",
    "LookUp",
    "Measure",
    "MoneyField",
    "Profile",
    "Reversal",
    "Rule",
    "StepSpec",
    "Then",
    "ToolDefinition",
    "WebhookTarget",
    "parse",
]
