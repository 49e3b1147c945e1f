"""Schemas of the endpoints for runs, tools and the agent's identity."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from agents.choices import ThreadResult

from .proposals import ProposalOut
from .types import Strict, Timestamp


class FinishIn(Strict):
    result: Annotated[ThreadResult, Field(strict=False)]  # JSON has no enumerations


class CheckpointOut(BaseModel):
    """One checkpoint. `blob` is base64, null when there is none or it was erased; its
    digest stays."""

    number: int
    proposal: str
    summary: str
    state: dict[str, Any]
    blob: str | None
    blob_sha256: str | None
    resume_at: str
    created_at: Timestamp


class ResumeOut(BaseModel):
    """The run's latest checkpoint, and in `outcome` the proposal that it waited for."""

    thread: str
    status: str
    checkpoint: CheckpointOut | None
    outcome: ProposalOut | None
    acknowledged: bool  # the agent has acknowledged this outcome


class ThreadOut(BaseModel):
    thread: str
    status: str
    result: str


class ToolOut(BaseModel):
    """A tool that the agent may propose. `schema` is the JSON Schema of its arguments,
    `tier` the authority that it needs before the policy's classes and rules apply."""

    name: str
    version: int
    title: str
    description: str
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    risk: str
    tier: str
    requires_reason: bool


class DailyProposalsOut(BaseModel):
    """How many actions an agent may propose within 24 hours, and how many are left
    now."""

    limit: int
    left: int


class DailyMoneyOut(BaseModel):
    """The money in one currency that an agent may move within 24 hours over all its
    tools, and what is left of it now."""

    currency: str
    limit: str
    left: str


class WhoamiOut(BaseModel):
    """The agent that a key belongs to. `state` is "running", "paused" or "stopped". A
    limit is null where the agent has none; with `daily_money`, a currency that it does
    not list cannot be moved."""

    agent: str
    name: str
    version: str
    tools: list[str]
    risk_ceiling: str
    scopes: list[str]
    state: str
    daily_proposals: DailyProposalsOut | None
    daily_money: list[DailyMoneyOut] | None
