"""The field types and the base class that the schemas share."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

LONGEST_TEXT = 20_000


class Strict(Schema):
    """Base of the bodies that agents send. Unknown fields and values of another type
    are refused: the text "0" is not a number, "true" is not a boolean."""

    model_config = ConfigDict(extra="forbid", strict=True)


Verdict = Literal["approve", "reject", "modify", "escalate"]
Level = Literal["low", "medium", "high", "critical"]
Demand = Literal["auto", "notify", "approve", "escalate", "block"]
Word = Literal[
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
Progress = Literal["queued", "claimed", "succeeded", "failed", "unknown", "refused"]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)$")]
Hash = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Short = Annotated[str, Field(max_length=128)]
