"""What every call answers that returns a proposal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import Field

from .types import Demand, Hash, Level, Moment, Progress, Verdict, Word


class StepOut(Schema):
    role: str
    required: int
    given: int


class RequestOut(Schema):
    id: str
    url: str
    version: int
    expires_at: str
    steps: list[StepOut]


class RuleOut(Schema):
    id: str
    text: str


class PolicyOut(Schema):
    version: int | None
    rules: list[RuleOut]


class GrantOut(Schema):
    token: str
    expires_at: str


class DecisionOut(Schema):
    verdict: Verdict
    reason_code: str | None
    reason: str | None
    final_args: dict[str, Any]
    by_role: str
    decided_at: Moment


class ExecutionOut(Schema):
    id: str
    status: Progress
    result: dict[str, Any] | None
    code: str | None = None
    detail: str | None = None
    finished_at: Moment | None


class MessageOut(Schema):
    """What people wrote to the agent, redacted. `from` is a role, never a name."""

    from_: Annotated[str, Field(alias="from")]
    kind: Literal["question", "guidance", "answer"]
    text: str
    at: Moment
    round: int


class ProposalOut(Schema):
    """Every call that returns a proposal returns this. `outcome` names what became of
    it once there is something to act upon, the same until it is acknowledged."""

    id: str
    thread: str
    tool: str
    revision: int
    action_hash: Hash
    status: Word
    risk: Level
    tier: Demand
    policy: PolicyOut
    request: RequestOut | None
    returned: bool
    messages: list[MessageOut]
    grant: GrantOut | None
    decision: DecisionOut | None
    execution: ExecutionOut | None
    outcome: str | None = None
    acknowledged_at: Moment | None = None
    # It ended without a yes, but came back with a backup: look whether it happened in
    # the history that is lost before you propose it again.
    may_have_run: bool = False
    # The proposal that this is part of, or undoes: then `source` is "reversal".
    parent: str | None = None
    source: str | None = None
    created_at: Moment
    settled_at: Moment | None


class ProposalPage(Schema):
    items: list[ProposalOut]
    next_cursor: str | None


class BatchItemOut(Schema):
    """One item's own answer: its status code, and a proposal or a problem."""

    status: int
    replayed: bool = False
    proposal: ProposalOut | None = None
    problem: dict[str, Any] | None = None


class BatchOut(Schema):
    items: list[BatchItemOut]
