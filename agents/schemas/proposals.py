"""Schemas of the endpoints for proposals: first what Counterseal answers, then what an
agent sends, with the limits on it."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    StrictBool,
    StrictInt,
    model_validator,
)

from agents.choices import AUTHZEN_SOURCE
from policies.tool_descriptions import LONGEST_TEXT
from reviews.choices import REVERSAL_SOURCE
from reviews.dialogue.messages import TEXT_LENGTH as MESSAGE_LENGTH
from reviews.outbound.trace_context import parse_traceparent

from .types import (
    ExecutionStatusName,
    LongText,
    ProposalStatusName,
    RiskName,
    Sha256Text,
    ShortText,
    Strict,
    TierName,
    Timestamp,
    VerdictName,
)


class StepOut(BaseModel):
    """One step of a request: a role, how many of its people must approve, and how many
    have."""

    role: str
    required: int
    given: int


class RequestOut(BaseModel):
    """The approval request: its page for people, its version and its deadline."""

    id: str
    url: str
    version: int
    expires_at: Timestamp
    steps: list[StepOut]


class RuleOut(BaseModel):
    id: str
    text: str


class PolicyOut(BaseModel):
    """The policy version that ruled on the action, and the rules that applied."""

    version: int | None
    rules: list[RuleOut]


class GrantOut(BaseModel):
    """A one-use grant for the agent to redeem before `expires_at`, and not before
    `not_before` if an approval says so."""

    token: str
    expires_at: Timestamp
    not_before: Timestamp | None = None


class DecisionOut(BaseModel):
    """The verdict that settled the request. `final_args` are the arguments that were
    decided on; `by_role` is a role, never a name."""

    verdict: VerdictName
    reason_code: str | None
    reason: str | None
    final_args: dict[str, Any]
    by_role: str
    decided_at: Timestamp


class ExecutionOut(BaseModel):
    """The proposal's newest execution."""

    id: str
    status: ExecutionStatusName
    result: dict[str, Any] | None
    code: str | None = None
    detail: str | None = None
    finished_at: Timestamp | None


class EvidenceFileOut(BaseModel):
    """A file as the gate holds it. `problem` says why people cannot see it; the hash
    stays usable. `pictures` of `count` pages or frames, or some of `rows` and
    `columns`, are shown. `sensitive`: it has what is hidden in any case."""

    sha256: Sha256Text
    media_type: str
    size: int
    problem: str
    sensitive: bool
    pictures: int
    count: int
    rows: int
    columns: int


class MessageOut(BaseModel):
    """What a person or the agent said about the proposal, redacted. `from` is a
    person's role, never a name, or `agent`. A question or guidance opens a round; an
    answer has the round of its question."""

    from_: Annotated[str, Field(alias="from")]
    kind: Literal["question", "guidance", "answer"]
    text: str
    at: Timestamp
    round: int


class ProposalOut(BaseModel):
    """A proposal, as every call that concerns one returns it. `outcome` is set once the
    agent can act on the result: the id to acknowledge, unchanged until then."""

    id: str
    thread: str
    tool: str
    revision: int
    action_hash: Sha256Text
    status: ProposalStatusName
    risk: RiskName
    tier: TierName
    policy: PolicyOut
    request: RequestOut | None
    # A person waits for a revision: send one, or withdraw the proposal. Others may
    # still decide it.
    returned: bool
    messages: list[MessageOut]
    grant: GrantOut | None
    decision: DecisionOut | None
    execution: ExecutionOut | None
    outcome: str | None = None
    acknowledged_at: Timestamp | None = None
    # The proposal ended without an approval, but it was restored from a backup, and its
    # effect may have happened in the lost history. Check that before proposing again.
    may_have_run: bool = False
    # How many later calls proposed the same action while the request was open; each got
    # this proposal as its answer.
    joined: int = 0
    # The rejected proposal of the same action. This one got its rejection at once.
    repeats: str | None = None
    # The proposal that this one is part of, or undoes; `source` is then "reversal".
    parent: str | None = None
    source: str | None = None
    created_at: Timestamp
    settled_at: Timestamp | None


class ProposalPage(BaseModel):
    items: list[ProposalOut]
    next_cursor: str | None


class BatchItemOut(BaseModel):
    """The response to one item: its status code, and a proposal or a problem."""

    status: int
    replayed: bool = False
    proposal: ProposalOut | None = None
    problem: dict[str, Any] | None = None


class BatchOut(BaseModel):
    items: list[BatchItemOut]


THREAD_PATTERN = r"^[A-Za-z0-9._:-]{1,128}$"
MAX_EVIDENCE_ITEMS = 50  # items; a policy may set a lower limit
MOST_FILES = 8  # of one proposal
ARGS_LIMIT = 64 * 1024  # bytes of canonical JSON
WORDS_LIMIT = 128 * 1024  # the same, for everything beside arguments and checkpoint
STATE_LIMIT = 64 * 1024  # the same, for a checkpoint's structured state
BLOB_LIMIT = 512 * 1024  # bytes


def _check_base64(text: str) -> str:
    try:
        size = len(base64.b64decode(text, validate=True))
    except binascii.Error:
        raise ValueError("must be base64") from None
    if size > BLOB_LIMIT:
        raise ValueError(f"must be at most {BLOB_LIMIT} bytes")
    return text


def check_thread_name(name: str) -> str:
    """Refuse names that a URL path resolves away: the run would have no page, so nobody
    could stop it."""
    if name in {".", ".."}:
        raise ValueError("must not be . or ..")
    return name


def _check_source(name: str) -> str:
    if name == REVERSAL_SOURCE:
        raise ValueError("is reserved for proposals by people")
    if name == AUTHZEN_SOURCE:
        raise ValueError("is reserved for access requests over AuthZEN")
    return name


def _check_traceparent(text: str) -> str:
    parent = parse_traceparent(text)
    if parent is None:
        raise ValueError("must be a W3C traceparent, like 00-<32 hex>-<16 hex>-01")
    return str(parent)


class Alternative(Strict):
    """Another action that the agent considered, and why it did not choose it."""

    action: LongText
    why_not: LongText = ""


class FileIn(Strict):
    """A file that the agent has sent with `POST /evidence`. `sensitive` hides it from
    reviewers until a person reveals it with a reason."""

    sha256: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
    name: Annotated[str, Field(min_length=1, max_length=200)]
    sensitive: StrictBool = False


class Evidence(Strict):
    """One piece of evidence: its kind, source, time and text, or a file."""

    kind: ShortText
    source: ShortText = ""
    text: LongText = ""
    at: ShortText = ""
    file: FileIn | None = None

    @model_validator(mode="after")
    def _has_content(self) -> Evidence:
        if not self.text and self.file is None:
            raise ValueError("needs a text or a file")
        return self


def _check_file_count(items: list[Evidence]) -> list[Evidence]:
    count = sum(item.file is not None for item in items)
    if count > MOST_FILES:
        raise ValueError(f"at most {MOST_FILES} files: {count} were given")
    return items


class CheckpointIn(Strict):
    """The agent's suspended state. People read the summary and the state, redacted. The
    page shows three keys of the state apart from the rest: `goal`, `plan` (a list of
    sentences or of `{"step", "state"}`) and `budget` (an object)."""

    summary: LongText = ""
    state: dict[str, Any] = {}
    blob: Annotated[str, AfterValidator(_check_base64)] | None = None
    resume_at: ShortText = ""


class OnBehalfOf(Strict):
    """The party for whom the agent acts. People whom `id` or `chain` names may not
    decide the proposal. `properties` are what else the agent says about it; people read
    them as not checked."""

    kind: Literal["customer", "user", "agent", "schedule"]
    id: ShortText = ""
    chain: Annotated[list[ShortText], Field(max_length=32)] = []
    properties: Annotated[dict[str, Any], Field(max_length=32)] = {}


Uncertainty = StrictBool | Annotated[float, Field(ge=0, le=1)]


class ActionIn(Strict):
    """The fields that a proposal and a revision share."""

    args: dict[str, Any]
    rationale: LongText = ""
    expected_outcome: LongText = ""
    reversal: LongText = ""
    alternatives: Annotated[list[Alternative], Field(max_length=12)] = []
    uncertain: Uncertainty = False
    evidence: Annotated[
        list[Evidence],
        Field(max_length=MAX_EVIDENCE_ITEMS),
        AfterValidator(_check_file_count),
    ] = []
    checkpoint: CheckpointIn | None = None
    preconditions: dict[str, Any] = {}
    expires_in: Annotated[StrictInt, Field(ge=1, le=90 * 24 * 3600)] | None = None


class ToolDescriptionIn(Strict):
    """What the agent says of the tool: a text, and a JSON Schema of the arguments. Both
    count only while the policy does not declare the tool: people read them as the
    agent's words."""

    text: Annotated[str, Field(max_length=LONGEST_TEXT)] = ""
    # `schema` is an attribute of the base.
    arguments: Annotated[dict[str, Any], Field(alias="schema")] = {}


class ProposalIn(ActionIn):
    """`POST /proposals`. Only `thread`, `tool` and `args` are required."""

    thread: Annotated[
        str, Field(pattern=THREAD_PATTERN), AfterValidator(check_thread_name)
    ]
    tool: Annotated[str, Field(min_length=1, max_length=64)]
    on_behalf_of: OnBehalfOf | None = None
    parent: Annotated[str, Field(max_length=40)] = ""
    supersedes: Annotated[str, Field(max_length=40)] = ""
    source: Annotated[str, Field(max_length=64), AfterValidator(_check_source)] = ""
    group: ShortText = ""
    priority: Literal["low", "normal", "critical"] = "normal"
    # One more effect is meant: the call does not join an open request of this action.
    again: StrictBool = False
    callback_url: Annotated[str, Field(max_length=2048)] | None = None
    # W3C Trace Context. Without it, the request's header of that name counts.
    traceparent: Annotated[str, AfterValidator(_check_traceparent)] | None = None
    tool_description: ToolDescriptionIn | None = None


class RevisionIn(ActionIn):
    """`POST /proposals/{id}/revisions`. The tool and the thread cannot change."""


def check_has_words(text: str) -> str:
    """Refuse a text of white space only."""
    if not text.strip():
        raise ValueError("must not be blank")
    return text


class MessageIn(Strict):
    """`POST /proposals/{id}/messages`. `round` names what an answer answers. It may be
    left out when only one question is unanswered."""

    kind: Literal["answer", "question"]
    text: Annotated[
        str, Field(max_length=MESSAGE_LENGTH), AfterValidator(check_has_words)
    ]
    round: Annotated[StrictInt, Field(ge=1)] | None = None


class BatchItemIn(ProposalIn):
    """One proposal of a batch, with the key that a single call sends as a header."""

    idempotency_key: Annotated[str, Field(min_length=1, max_length=255)]


class BatchIn(Strict):
    """`POST /proposals/batch`. Each item is validated on its own, as `BatchItemIn`."""

    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=200)]
