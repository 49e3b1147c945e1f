"""Schemas for effects that an agent performs itself, and for acknowledging outcomes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictInt

from .types import Strict, Timestamp


class RedeemIn(Strict):
    token: Annotated[str, Field(min_length=1, max_length=16384)]


class OutcomeIn(Strict):
    """The outcome of an effect. `fence` and `action_hash` are those of the claim. A
    result goes with `succeeded`, a code and a detail with `failed` and `unknown`."""

    fence: Annotated[StrictInt, Field(ge=1)]
    status: Literal["succeeded", "failed", "unknown"]
    result: dict[str, Any] | None = None
    code: Annotated[str, Field(max_length=64)] = ""
    detail: Annotated[str, Field(max_length=2000)] = ""
    action_hash: Annotated[str, Field(max_length=80)]


class AcknowledgeIn(Strict):
    outcome: Annotated[str, Field(min_length=1, max_length=40)]


class RedeemOut(BaseModel):
    """A claim: the action that the agent must perform, its fence, and the end of its
    lease. `grant` is the signed token for the tool's service."""

    execution: str
    tool: str
    tool_version: int
    args: dict[str, Any]
    preconditions: dict[str, Any]
    action_hash: str
    idempotency_key: str
    fence: int
    lease_until: Timestamp
    grant: str
