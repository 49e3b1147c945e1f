"""The words that the schemas are made of."""

from __future__ import annotations

from typing import Annotated, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

LONGEST_TEXT = 20_000


class Strict(Schema):
    """A body that an agent sends: no field that the contract does not know, and no
    value of another type. The text "0" is no number and "true" is no boolean."""

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
