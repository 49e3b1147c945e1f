"""What an adapter keeps in the framework's stored run about a call that waits, and what
the gate says of it later. Plain data: nothing here imports a framework."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self, cast

from counterseal_client.gate import Gate
from counterseal_client.models import Proposal
from counterseal_client.tool_errors import ReturnedForRevision, build_tool_error

WAITING_TYPE = "counterseal_approval"


class PlainException(Exception):
    """An exception that a program keeps: a dataclass whose fields JSON can hold."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields."""
        own = fields(cast("Any", self))
        return {field.name: getattr(self, field.name) for field in own}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """What `to_dict` returned."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class CallDecision:
    """What the gate says of one decided call. `refusal` is the text for the model when
    the call has no effect to come, empty when the tool can run. `by` is the role of who
    decided, or "policy"."""

    proposal: str
    refusal: str
    by: str


def describe_waiting(proposal: Proposal, call_id: str) -> dict[str, Any]:
    """What waits, and where people decide."""
    request = proposal.request
    return {
        "type": WAITING_TYPE,
        "proposal": proposal.id,
        "tool": proposal.tool,
        "tool_call_id": call_id,
        "url": request.url if request else "",
    }


def names_proposal(value: Any) -> bool:
    """Whether a value of a stored run comes from `describe_waiting`."""
    return isinstance(value, Mapping) and value.get("type") == WAITING_TYPE


def look_up(proposal: str, gate: Gate, wait_seconds: float) -> Proposal:
    """The proposal, after at most `wait_seconds` for news."""
    return gate.wait(proposal, wait_seconds) if wait_seconds else gate.get(proposal)


def is_ready(proposal: Proposal) -> bool:
    """Whether the tool can go on: it ended, it may be redeemed, or it was returned."""
    return proposal.final or proposal.grant is not None or proposal.returned


def read_refusal(proposal: Proposal) -> str:
    """Why a decided call has no effect, for the model; empty if it may have one. A
    refusal always has a text: without one, models repeat the call."""
    if proposal.returned:
        return str(ReturnedForRevision(proposal))
    if proposal.grant is not None or proposal.status == "executed":
        return ""
    return str(build_tool_error(proposal, ""))


def are_all_ready(
    waiting: Iterable[Mapping[str, Any]], gate: Gate, wait_seconds: float = 0
) -> bool:
    """Whether each of these calls can go on. `waiting` has values of
    `describe_waiting`. Waits for at most `wait_seconds` for each call, and not for
    those after one that cannot."""
    return all(
        is_ready(look_up(str(value["proposal"]), gate, wait_seconds))
        for value in waiting
    )


def collect_decisions(
    waiting: Mapping[str, Any], gate: Gate, wait_seconds: float = 0
) -> dict[str, CallDecision]:
    """The decided ones of these calls, by call id. `waiting` has the value of
    `describe_waiting` for each call; other values are left alone.

    Waits for at most `wait_seconds` until a first call is decided, and not for others.
    """
    decided: dict[str, CallDecision] = {}
    for call_id, value in waiting.items():
        if not names_proposal(value):
            continue
        seconds = 0 if decided else wait_seconds
        proposal = look_up(str(value["proposal"]), gate, seconds)
        if is_ready(proposal):
            by = proposal.decision.by_role if proposal.decision else "policy"
            decided[call_id] = CallDecision(proposal.id, read_refusal(proposal), by)
    return decided
