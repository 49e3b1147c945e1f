"""What an agent is given to perform an effect itself, and what it says of outcomes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field, StrictInt

from .types import Strict


class RedeemIn(Strict):
    token: Annotated[str, Field(min_length=1, max_length=16384)]


class OutcomeIn(Strict):
    fence: Annotated[StrictInt, Field(ge=1)]
    status: Literal["succeeded", "failed", "unknown"]
    result: dict[str, Any] | None = None
    code: Annotated[str, Field(max_length=64)] = ""
    detail: Annotated[str, Field(max_length=2000)] = ""
    action_hash: Annotated[str, Field(max_length=80)]


class AcknowledgeIn(Strict):
    outcome: Annotated[str, Field(min_length=1, max_length=40)]


class RedeemOut(Schema):
    execution: str
    tool: str
    tool_version: int
    args: dict[str, Any]
    preconditions: dict[str, Any]
    action_hash: str
    idempotency_key: str
    fence: int
    lease_until: str
    grant: str
