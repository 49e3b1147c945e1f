"""An agent's runs, and who it is itself."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

from agents.choices import ThreadResult

from .proposals import ProposalOut
from .types import Strict


class FinishIn(Strict):
    result: Annotated[ThreadResult, Field(strict=False)]  # JSON has no enumerations


class CheckpointOut(Schema):
    number: int
    proposal: str
    summary: str
    state: dict[str, Any]
    blob: str | None
    blob_sha256: str | None
    resume_at: str
    created_at: str


class ResumeOut(Schema):
    """The latest checkpoint and the structured outcome to resume with."""

    thread: str
    status: str
    checkpoint: CheckpointOut | None
    outcome: ProposalOut | None
    acknowledged: bool  # the agent has said that it took this outcome


class ThreadOut(Schema):
    thread: str
    status: str
    result: str


class ToolOut(Schema):
    name: str
    version: int
    title: str
    description: str
    schema_: Annotated[dict[str, Any], Field(alias="schema")]
    risk: str
    tier: str
    requires_reason: bool


class WhoamiOut(Schema):
    agent: str
    name: str
    version: str
    tools: list[str]
    risk_ceiling: str
    scopes: list[str]
    state: str
