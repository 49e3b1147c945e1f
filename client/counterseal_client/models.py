"""Counterseal's answers as validated, frozen values.

The fields have the names of the API. The API may add fields and never renames one: a
field that this client does not know stays in `model_extra`. A text that the API leaves
out is empty here.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Annotated, Any, TypeVar

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from .errors import FieldError, InvalidAnswer

FINAL_STATUSES = frozenset(
    {
        "blocked",
        "executed",
        "failed",
        "unknown",
        "refused",
        "rejected",
        "expired",
        "withdrawn",
        "superseded",
    }
)
"""Statuses after which waiting ends. `unknown` may later be settled by a person."""

Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
Blob = Annotated[bytes, BeforeValidator(lambda value: b64decode(value or ""))]
Object = dict[str, Any]


class Answer(BaseModel):
    """Base of all answers."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


AnswerType = TypeVar("AnswerType", bound=Answer)


class Rule(Answer):
    """A rule of the policy that applied."""

    id: str
    text: str = ""


class Ruling(Answer):
    """The policy version that ruled on the action, and the rules that applied."""

    version: int | None = None
    rules: tuple[Rule, ...] = ()


class StepCount(Answer):
    """How many people of a role must approve, and how many have."""

    role: str
    required: int
    given: int = 0


class ApprovalRequest(Answer):
    """The approval request: its page for people, its version and its deadline."""

    id: str
    url: str = ""
    version: int = 1
    expires_at: AwareDatetime | None = None
    steps: tuple[StepCount, ...] = ()


class Message(Answer):
    """A question, an answer or guidance between a reviewer and the agent. `sender` is a
    role, never a name, or `agent`. An answer has the round of its question."""

    sender: Annotated[str, Field(alias="from")]
    kind: str
    text: str
    at: AwareDatetime | None = None
    round: int = 0


class Grant(Answer):
    """A one-use grant that the agent redeems itself."""

    token: Annotated[str, Field(repr=False)]
    expires_at: AwareDatetime | None = None


class Decision(Answer):
    """The decision. After an edit, `verdict` is `modify`, and `final_args` are the
    authorized arguments."""

    verdict: str
    reason_code: Text = ""
    reason: Text = ""
    final_args: Object | None = None
    by_role: Text = ""
    decided_at: AwareDatetime | None = None


class Execution(Answer):
    """The newest execution. `code` and `detail` say why it failed."""

    id: str
    status: str
    result: Object | None = None
    code: Text = ""
    detail: Text = ""
    finished_at: AwareDatetime | None = None


class Proposal(Answer):
    """One proposed action and its current state. `outcome` is the id of the result,
    empty until there is one to act on: store it with your work, then acknowledge
    it."""

    id: str
    thread: str
    tool: str
    revision: int = 1
    action_hash: Text = ""
    status: str
    risk: Text = ""
    tier: Text = ""
    policy: Ruling = Ruling()
    request: ApprovalRequest | None = None
    returned: bool = False
    messages: tuple[Message, ...] = ()
    grant: Grant | None = None
    decision: Decision | None = None
    execution: Execution | None = None
    outcome: Text = ""
    acknowledged_at: AwareDatetime | None = None
    may_have_run: bool = False
    parent: Text = ""
    source: Text = ""
    created_at: AwareDatetime | None = None
    settled_at: AwareDatetime | None = None

    @property
    def final(self) -> bool:
        """Whether the status is final."""
        return self.status in FINAL_STATUSES

    @property
    def received(self) -> tuple[Message, ...]:
        """The messages of people."""
        return tuple(one for one in self.messages if one.sender != "agent")

    @property
    def questions(self) -> tuple[Message, ...]:
        """The questions of people that the agent has not answered yet."""
        answered = {
            one.round
            for one in self.messages
            if one.sender == "agent" and one.kind == "answer"
        }
        return tuple(
            one
            for one in self.received
            if one.kind == "question" and one.round not in answered
        )

    @property
    def guidance(self) -> str:
        """What the last person wrote who returned the proposal, or nothing."""
        found = [one.text for one in self.messages if one.kind == "guidance"]
        return found[-1] if found else ""


class Question(Answer):
    """A question to people. `status` is open, answered, declined, expired or withdrawn;
    `note` is why a person declined."""

    id: str
    url: str = ""
    thread: str = ""
    to: str = ""
    status: str
    text: str = ""
    schema_: Annotated[Object, Field(alias="schema")]
    asked_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    settled_at: AwareDatetime | None = None
    answer: Object | None = None
    note: Text = ""


class ProposalPage(Answer):
    """One page of proposals. `next_cursor` is empty on the last one."""

    items: tuple[Proposal, ...]
    next_cursor: Text = ""


class Claim(Answer):
    """A redeemed grant: perform `args` under `idempotency_key`, then report the outcome
    with the same `fence` before `lease_until`. Pass `grant` and `preconditions` to a
    service that verifies grants itself."""

    execution: str
    args: Object
    action_hash: Text = ""
    idempotency_key: str
    fence: int
    lease_until: AwareDatetime | None = None
    tool: Text = ""
    tool_version: int = 0
    preconditions: Object = {}
    grant: Annotated[Text, Field(repr=False)] = ""


class Checkpoint(Answer):
    """The state an agent suspended with, and the proposal it suspended on.

    `summary` and `state` come back redacted; `blob` comes back as it was stored.
    """

    proposal: Text = ""
    summary: Text = ""
    state: Object = {}
    blob: Blob = b""
    resume_at: Text = ""


class ThreadState(Answer):
    """The checkpoint of a thread and the proposal that it waits for, which may still be
    open or may have been acted on before. `due` tells them apart."""

    thread: str
    status: str
    checkpoint: Checkpoint | None = None
    outcome: Proposal | None = None
    acknowledged: bool = False

    @property
    def due(self) -> Proposal | None:
        """The outcome to act on: None while there is none, and after it was
        acknowledged."""
        if self.acknowledged or self.outcome is None or not self.outcome.outcome:
            return None
        return self.outcome


class ToolDeclaration(Answer):
    """A tool as the policy declares it. `arguments` is the JSON Schema of its
    arguments, `tier` the authority that it needs before classes and rules apply."""

    name: str
    version: int = 0
    title: str = ""
    description: str = ""
    arguments: Annotated[Object, Field(alias="schema")] = {}
    risk: str = ""
    tier: str = ""
    requires_reason: bool = False


class DailyProposals(Answer):
    """How many actions the agent may propose within 24 hours, and how many are left."""

    limit: int
    left: int


class DailyMoney(Answer):
    """The money in one currency that the agent may move within 24 hours over all its
    tools, and what is left of it."""

    currency: str
    limit: str
    left: str


class Identity(Answer):
    """The agent that a key belongs to. `state` is "running", "paused" or "stopped". A
    limit is None where the agent has none."""

    agent: str
    name: str = ""
    version: str = ""
    tools: tuple[str, ...] = ()
    risk_ceiling: str = ""
    scopes: tuple[str, ...] = ()
    state: str = ""
    daily_proposals: DailyProposals | None = None
    daily_money: tuple[DailyMoney, ...] | None = None


def parse_answer(model: type[AnswerType], data: object) -> AnswerType:
    """Validate an answer. Raises InvalidAnswer, which names each field that does not
    fit."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidAnswer(model.__name__, list_field_errors(error)) from error


def list_field_errors(error: ValidationError) -> tuple[FieldError, ...]:
    """The faults that pydantic found, each with its path. Values are left out: they may
    be private."""
    return tuple(
        FieldError(".".join(str(part) for part in fault["loc"]), fault["msg"])
        for fault in error.errors(include_input=False, include_url=False)
    )
