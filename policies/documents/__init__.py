"""The policy document: what an administrator writes, and its checks. Pure.

`parse_document` checks a new document as a whole; the gate can evaluate any document
that it accepts. `restore_document` reads a stored one.
"""

from __future__ import annotations

from .alerts import Alert
from .amounts import Amount, ArgumentPath, MoneyField
from .definitions import (
    DEFAULT_FLOOR,
    LONGEST,
    LONGEST_WINDOW,
    USUAL_WINDOW,
    Balance,
    Batch,
    EffectClass,
    Figure,
    Limit,
    Profile,
    Reversal,
    StandingTerms,
    StepSpec,
    ToolDefinition,
    UndeclaredTool,
)
from .document import (
    EVERY_TOOL,
    RESERVED_RULE_IDS,
    Desk,
    Document,
    Measure,
    Rule,
    Then,
    UnknownTools,
)
from .loading import (
    MAX_CHARACTERS,
    InvalidPolicy,
    parse_document,
    restore_document,
)
from .names import TOOL_NAME
from .review import Conflict, Review
from .routes import Place, Route, RoutedMessage, select_places
from .sentences import Chip, Piece, Quote, Segment
from .targets import (
    AgentTarget,
    CallableTarget,
    CallableVerifier,
    LookUp,
    ToolReader,
    WebhookTarget,
)
from .wording import suggest_name

__all__ = [
    "DEFAULT_FLOOR",
    "EVERY_TOOL",
    "LONGEST",
    "LONGEST_WINDOW",
    "MAX_CHARACTERS",
    "RESERVED_RULE_IDS",
    "TOOL_NAME",
    "USUAL_WINDOW",
    "AgentTarget",
    "Alert",
    "Amount",
    "ArgumentPath",
    "Balance",
    "Batch",
    "CallableTarget",
    "CallableVerifier",
    "Chip",
    "Conflict",
    "Desk",
    "Document",
    "EffectClass",
    "Figure",
    "InvalidPolicy",
    "Limit",
    "LookUp",
    "Measure",
    "MoneyField",
    "Piece",
    "Place",
    "Profile",
    "Quote",
    "Reversal",
    "Review",
    "Route",
    "RoutedMessage",
    "Rule",
    "Segment",
    "StandingTerms",
    "StepSpec",
    "Then",
    "ToolDefinition",
    "ToolReader",
    "UndeclaredTool",
    "UnknownTools",
    "WebhookTarget",
    "parse_document",
    "restore_document",
    "select_places",
    "suggest_name",
]
