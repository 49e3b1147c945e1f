"""What the batches' calls take and give, as OpenAPI tells it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field, StrictBool

MOST = 50

RequestId = Annotated[str, Field(max_length=40)]


class DecideBatchIn(Schema):
    """One verdict on an exact ordered list. `digest` is SHA-256 over the RFC 8785 bytes
    of the items' `entry` in this order; `GET` gives it for any selection."""

    model_config = ConfigDict(extra="forbid")

    digest: Annotated[str, Field(max_length=80)]
    items: Annotated[list[RequestId], Field(min_length=1, max_length=MOST)]
    # Members that were seen and are left out: in neither list is what came since.
    left_out: list[RequestId] = Field(default_factory=list, max_length=MOST)
    verdict: Literal["approve", "reject", "escalate"]
    reason_code: Annotated[str, Field(max_length=16)] = ""
    reason: Annotated[str, Field(max_length=4096)] = ""
    stop_at_failure: StrictBool = True


class EntryOut(Schema):
    request: str
    version: int
    action_hash: str
    seal: str
    reading: str


class BatchMemberOut(Schema):
    entry: EntryOut
    position: int
    args: dict[str, Any]
    amount: str | None
    status: str
    expires_at: str
    why_not: str
    execution: str | None


class BatchDetailOut(Schema):
    id: str
    status: str
    tool: str
    agent: str
    queue: str
    group: str
    formed_at: str
    closes_at: str
    settled_at: str | None
    digest: str
    total: str | None
    currency: str | None
    stop_at_failure: bool
    halted: bool
    can_decide: bool
    why_not: str
    items: list[BatchMemberOut]


class BatchLineOut(Schema):
    id: str
    tool: str
    agent: str
    risk: str
    status: str
    expires_at: str | None


class BatchesOut(Schema):
    items: list[BatchLineOut]
    next_cursor: str | None
