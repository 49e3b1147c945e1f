"""What every call answers that returns a proposal.

What an agent proposes, with where it stands and why it asks.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from ninja import Schema
from pydantic import AfterValidator, Field, StrictBool, StrictInt

from reviews.choices import REVERSAL

from .types import (
    Demand,
    Hash,
    Level,
    Moment,
    Progress,
    Short,
    Strict,
    Text,
    Verdict,
    Word,
)


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


THREAD = r"^[A-Za-z0-9._:-]{1,128}$"
MOST_EVIDENCE = 50  # items that any policy may allow; one names its own most
ARGS_LIMIT = 64 * 1024  # bytes of canonical JSON
WORDS_LIMIT = 128 * 1024  # the same, of everything said around the arguments
STATE_LIMIT = 64 * 1024  # the same, of a checkpoint's structured state
BLOB_LIMIT = 512 * 1024  # bytes


def _base64(text: str) -> str:
    try:
        size = len(base64.b64decode(text, validate=True))
    except binascii.Error:
        raise ValueError("must be base64") from None
    if size > BLOB_LIMIT:
        raise ValueError(f"must be at most {BLOB_LIMIT} bytes")
    return text


def _place(name: str) -> str:
    """In an address these would lead to another page: nobody could stop the run."""
    if name in {".", ".."}:
        raise ValueError("must be a name, not . or ..")
    return name


def _source(name: str) -> str:
    if name == REVERSAL:
        raise ValueError("must be another word: this one says that a person proposed")
    return name


class Alternative(Strict):
    action: Text
    why_not: Text = ""


class Evidence(Strict):
    kind: Short
    source: Short = ""
    text: Text
    at: Short = ""


class CheckpointIn(Strict):
    """Where the agent stands. People read the summary and the state, redacted; in the
    state they see `goal`, `plan` (a list of sentences or of `{"step", "state"}`) and
    `budget` (an object) apart from the rest."""

    summary: Text = ""
    state: dict[str, Any] = {}
    blob: Annotated[str, AfterValidator(_base64)] | None = None
    resume_at: Short = ""


class OnBehalfOf(Strict):
    kind: Literal["customer", "user", "agent", "schedule"]
    id: Short = ""
    chain: Annotated[list[Short], Field(max_length=32)] = []


Uncertain = StrictBool | Annotated[float, Field(ge=0, le=1)]


class ActionIn(Strict):
    """What a proposal and a revision have in common."""

    args: dict[str, Any]
    rationale: Text = ""
    expected_outcome: Text = ""
    reversal: Text = ""
    alternatives: Annotated[list[Alternative], Field(max_length=12)] = []
    uncertain: Uncertain = False
    evidence: Annotated[list[Evidence], Field(max_length=MOST_EVIDENCE)] = []
    checkpoint: CheckpointIn | None = None
    preconditions: dict[str, Any] = {}
    expires_in: Annotated[StrictInt, Field(ge=1, le=90 * 24 * 3600)] | None = None


class ProposalIn(ActionIn):
    """`POST /proposals`. Only thread, tool and args are required."""

    thread: Annotated[str, Field(pattern=THREAD), AfterValidator(_place)]
    tool: Annotated[str, Field(min_length=1, max_length=64)]
    on_behalf_of: OnBehalfOf | None = None
    parent: Annotated[str, Field(max_length=40)] = ""
    supersedes: Annotated[str, Field(max_length=40)] = ""
    source: Annotated[str, Field(max_length=64), AfterValidator(_source)] = ""
    group: Short = ""
    priority: Literal["low", "normal", "critical"] = "normal"
    callback_url: Annotated[str, Field(max_length=2048)] | None = None


class RevisionIn(ActionIn):
    """`POST /proposals/{id}/revisions`: the tool and thread stay."""


class BatchItemIn(ProposalIn):
    """One proposal of a batch, with the key that a single call has in its header."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)]


class BatchIn(Strict):
    """`POST /proposals/batch`. Items are checked one by one, as `BatchItemIn`."""

    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=200)]
