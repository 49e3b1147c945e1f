"""Holdpoint's responses as typed, frozen values.

Fields may be added to the API and are never renamed. `raw` is the whole response, with
the fields that this client does not know.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

Data = Mapping[str, Any]
Value = TypeVar("Value")

FINAL = frozenset(
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


def moment(text: Any) -> datetime | None:
    """An RFC 3339 time as an aware datetime."""
    return datetime.fromisoformat(text) if text else None


def _maybe(parse: Callable[[Data], Value], data: Data | None) -> Value | None:
    return parse(data) if data else None


@dataclass(frozen=True, slots=True)
class FieldError:
    """An invalid field of the input, and why."""

    path: str
    message: str

    @classmethod
    def parse(cls, data: Data) -> FieldError:
        return cls(str(data.get("path", "")), str(data.get("message", "")))


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of the policy that applied."""

    id: str
    text: str

    @classmethod
    def parse(cls, data: Data) -> Rule:
        return cls(str(data.get("id", "")), str(data.get("text", "")))


@dataclass(frozen=True, slots=True)
class StepCount:
    """How many people of a role must approve, and how many have."""

    role: str
    required: int
    given: int

    @classmethod
    def parse(cls, data: Data) -> StepCount:
        return cls(data["role"], int(data["required"]), int(data.get("given", 0)))


@dataclass(frozen=True, slots=True)
class Request:
    """The approval request."""

    id: str
    url: str
    version: int
    expires_at: datetime | None
    steps: tuple[StepCount, ...]

    @classmethod
    def parse(cls, data: Data) -> Request:
        return cls(
            id=data["id"],
            url=data.get("url", ""),
            version=int(data.get("version", 1)),
            expires_at=moment(data.get("expires_at")),
            steps=tuple(StepCount.parse(s) for s in data.get("steps") or ()),
        )


@dataclass(frozen=True, slots=True)
class Message:
    """A question, an answer or guidance between a reviewer and the agent."""

    sender: str
    kind: str
    text: str
    at: datetime | None
    round: int

    @classmethod
    def parse(cls, data: Data) -> Message:
        return cls(
            sender=str(data.get("from", "")),
            kind=str(data.get("kind", "")),
            text=str(data.get("text", "")),
            at=moment(data.get("at")),
            round=int(data.get("round") or 0),
        )


@dataclass(frozen=True, slots=True)
class Grant:
    """A one-use grant that the agent redeems itself."""

    token: str
    expires_at: datetime | None

    @classmethod
    def parse(cls, data: Data) -> Grant:
        return cls(data["token"], moment(data.get("expires_at")))


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision. After an edit, `verdict` is `modify`, and `final_args` are the
    authorized arguments."""

    verdict: str
    reason_code: str
    reason: str
    final_args: dict[str, Any] | None
    by_role: str
    decided_at: datetime | None

    @classmethod
    def parse(cls, data: Data) -> Decision:
        return cls(
            verdict=data["verdict"],
            reason_code=data.get("reason_code") or "",
            reason=data.get("reason") or "",
            final_args=data.get("final_args"),
            by_role=data.get("by_role") or "",
            decided_at=moment(data.get("decided_at")),
        )


@dataclass(frozen=True, slots=True)
class Execution:
    """The newest execution. `code` and `detail` say why it failed."""

    id: str
    status: str
    result: dict[str, Any] | None
    code: str
    detail: str
    finished_at: datetime | None

    @classmethod
    def parse(cls, data: Data) -> Execution:
        return cls(
            id=data["id"],
            status=data["status"],
            result=data.get("result"),
            code=data.get("code") or "",
            detail=data.get("detail") or "",
            finished_at=moment(data.get("finished_at")),
        )


@dataclass(frozen=True, slots=True)
class Proposal:
    """One proposed action and its current state. `outcome` is the id of the result,
    empty until there is one to act on: store it with your work, then acknowledge
    it."""

    id: str
    thread: str
    tool: str
    revision: int
    action_hash: str
    status: str
    risk: str
    tier: str
    policy_version: int
    rules: tuple[Rule, ...]
    request: Request | None
    returned: bool
    messages: tuple[Message, ...]
    grant: Grant | None
    decision: Decision | None
    execution: Execution | None
    created_at: datetime | None
    settled_at: datetime | None
    outcome: str
    acknowledged: bool
    may_have_run: bool
    raw: Data = field(repr=False, compare=False)

    @property
    def final(self) -> bool:
        """Whether the status is final."""
        return self.status in FINAL

    @classmethod
    def parse(cls, data: Data) -> Proposal:
        policy = data.get("policy") or {}
        return cls(
            id=data["id"],
            thread=data["thread"],
            tool=data["tool"],
            revision=int(data.get("revision") or 1),
            action_hash=data.get("action_hash") or "",
            status=data["status"],
            risk=data.get("risk") or "",
            tier=data.get("tier") or "",
            policy_version=int(policy.get("version") or 0),
            rules=tuple(Rule.parse(r) for r in policy.get("rules") or ()),
            request=_maybe(Request.parse, data.get("request")),
            returned=bool(data.get("returned")),
            messages=tuple(Message.parse(m) for m in data.get("messages") or ()),
            grant=_maybe(Grant.parse, data.get("grant")),
            decision=_maybe(Decision.parse, data.get("decision")),
            execution=_maybe(Execution.parse, data.get("execution")),
            created_at=moment(data.get("created_at")),
            settled_at=moment(data.get("settled_at")),
            outcome=data.get("outcome") or "",
            acknowledged=bool(data.get("acknowledged_at")),
            may_have_run=data.get("may_have_run") is True,
            raw=data,
        )


@dataclass(frozen=True, slots=True)
class Redeemed:
    """A redeemed grant: perform `args` under `idempotency_key`, then report the outcome
    with the same `fence` before `lease_until`. Pass `grant` and `preconditions` to a
    service that verifies grants itself."""

    execution: str
    args: dict[str, Any]
    action_hash: str
    idempotency_key: str
    fence: int
    lease_until: datetime | None
    tool: str = ""
    preconditions: dict[str, Any] = field(default_factory=dict)
    grant: str = ""

    @classmethod
    def parse(cls, data: Data) -> Redeemed:
        return cls(
            execution=data["execution"],
            args=dict(data["args"]),
            action_hash=data.get("action_hash") or "",
            idempotency_key=data["idempotency_key"],
            fence=int(data["fence"]),
            lease_until=moment(data.get("lease_until")),
            tool=data.get("tool") or "",
            preconditions=dict(data.get("preconditions") or {}),
            grant=data.get("grant") or "",
        )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state an agent suspended with, and the proposal it suspended on.

    `summary` and `state` come back redacted; `blob` comes back as it was stored.
    """

    proposal: str
    summary: str
    state: dict[str, Any]
    blob: bytes
    resume_at: str

    @classmethod
    def parse(cls, data: Data) -> Checkpoint:
        return cls(
            proposal=data.get("proposal") or "",
            summary=data.get("summary") or "",
            state=dict(data.get("state") or {}),
            blob=b64decode(data.get("blob") or ""),
            resume_at=data.get("resume_at") or "",
        )


@dataclass(frozen=True, slots=True)
class Resume:
    """The checkpoint of a thread and the proposal that it waits for, which may still be
    open or may have been acted on before. `due` tells them apart."""

    thread: str
    status: str
    checkpoint: Checkpoint | None
    outcome: Proposal | None
    acknowledged: bool
    raw: Data = field(repr=False, compare=False)

    @property
    def due(self) -> Proposal | None:
        """The outcome to act on: None while there is none, and after it was
        acknowledged."""
        if self.acknowledged or self.outcome is None or not self.outcome.outcome:
            return None
        return self.outcome

    @classmethod
    def parse(cls, data: Data) -> Resume:
        return cls(
            thread=data.get("thread") or "",
            status=data.get("status") or "",
            checkpoint=_maybe(Checkpoint.parse, data.get("checkpoint")),
            outcome=_maybe(Proposal.parse, data.get("outcome")),
            acknowledged=bool(data.get("acknowledged")),
            raw=data,
        )
