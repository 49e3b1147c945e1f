"""The field types and the base class that the schemas share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from journal.clock import TIMESTAMP_RULE

MAX_TEXT_LENGTH = 20_000


# Not ninja's Schema, which validates a body without unknown fields twice at each level
# and reads every value through an object that may call it.
class Strict(BaseModel):
    """Base of the bodies that agents send. Unknown fields and values of another type
    are refused: the text "0" is not a number, "true" is not a boolean."""

    model_config = ConfigDict(extra="forbid", strict=True)


VerdictName = Literal["approve", "reject", "modify", "escalate"]
RiskName = Literal["low", "medium", "high", "critical"]
TierName = Literal["auto", "notify", "approve", "escalate", "block"]
ProposalStatusName = Literal[
    "blocked",
    "pending",
    "granted",
    "executing",
    "executed",
    "failed",
    "unknown",
    "refused",
    "rejected",
    "expired",
    "withdrawn",
    "superseded",
]
ExecutionStatusName = Literal[
    "queued", "claimed", "succeeded", "failed", "unknown", "refused"
]
Timestamp = Annotated[
    str,
    Field(
        pattern=r"^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$",
        description=TIMESTAMP_RULE,
        json_schema_extra={"format": "date-time"},
    ),
]
Sha256Text = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
LongText = Annotated[str, Field(max_length=MAX_TEXT_LENGTH)]
ShortText = Annotated[str, Field(max_length=128)]
