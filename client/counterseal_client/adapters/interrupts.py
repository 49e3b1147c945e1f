"""The values of LangGraph's and LangChain's interrupts, and the answers to them. Plain
data: nothing here imports a framework.

Four kinds of values wait for people: the adapter's own, raised by a tool for its call
or for a question; the one of
`HumanInTheLoopMiddleware` for a batch of calls, answered by position; and its one for
a single call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from counterseal_client.gate import Gate
from counterseal_client.models import Proposal, Question

from .decisions import is_ready, look_up, names_proposal, read_refusal

NOT_PROPOSED = "Not proposed. "
QUESTION_TYPE = "counterseal_question"
_DESCRIPTION = re.compile(r"Counterseal request (p-[a-z0-9]+)\b", re.ASCII)


def describe_proposal(proposal: Proposal) -> str:
    """The description of a call in the middleware's interrupt. It names the proposal,
    so that an answer goes to a call and not to a position."""
    page = f": {proposal.request.url}" if proposal.request else ""
    return f"Counterseal request {proposal.id}{page}"


def describe_fault(error: Exception) -> str:
    """The description of a call that was not proposed."""
    return f"{NOT_PROPOSED}{error}"


def is_batch(value: Any) -> bool:
    """Whether an interrupt of the middleware asks about several calls at once."""
    return isinstance(value, Mapping) and "action_requests" in value


def describe_question(question: Question) -> dict[str, Any]:
    """The value of an interrupt that waits for the answer to a question."""
    url = question.url
    return {"type": QUESTION_TYPE, "question": question.id, "url": url}


def names_question(value: Any) -> bool:
    """Whether an interrupt comes from `describe_question`."""
    return isinstance(value, Mapping) and value.get("type") == QUESTION_TYPE


def list_proposals(value: Any) -> list[str]:
    """The proposals that an interrupt waits for; none if it is not the gate's."""
    if names_proposal(value):
        return [str(value["proposal"])]
    matches = (_DESCRIPTION.match(text) for text in _list_descriptions(value))
    return [match[1] for match in matches if match]


def build_answer(value: Any, gate: Gate, wait_seconds: float = 0) -> Any:
    """The answer to an interrupt; None while people decide, and for an interrupt that
    is not the gate's.

    A batch is answered when each of its calls is decided, with as many decisions as it
    has calls, in their order. Waits for at most `wait_seconds` for each call.
    """
    if names_question(value):
        question = gate.wait_question(str(value["question"]), wait_seconds)
        return None if question.status == "open" else {"question": question.id}
    if names_proposal(value):
        proposal = look_up(str(value["proposal"]), gate, wait_seconds)
        return {"proposal": proposal.id} if is_ready(proposal) else None
    decisions = [
        _decide(text, gate, wait_seconds) for text in _list_descriptions(value)
    ]
    if not decisions or None in decisions:
        return None
    return {"decisions": decisions} if is_batch(value) else decisions[0]


def read_decision(proposal: Proposal) -> dict[str, str]:
    """What the gate says of a decided proposal, as a decision of the middleware. A
    rejection always has a text: without one, models repeat the call."""
    refusal = read_refusal(proposal)
    if refusal:
        return {"type": "reject", "message": refusal}
    return {"type": "approve"}


def _list_descriptions(value: Any) -> list[str]:
    """The descriptions of the calls in an interrupt of the middleware."""
    if not isinstance(value, Mapping):
        return []
    if value.get("type") == "tool_approval":
        return [str(value.get("description", ""))]
    actions = value.get("action_requests", [])
    return [str(action.get("description", "")) for action in actions]


def _decide(description: str, gate: Gate, wait_seconds: float) -> dict[str, str] | None:
    """The decision on one call, None while there is none."""
    if description.startswith(NOT_PROPOSED):
        return {"type": "reject", "message": description.removeprefix(NOT_PROPOSED)}
    match = _DESCRIPTION.match(description)
    if match is None:
        return None
    proposal = look_up(match[1], gate, wait_seconds)
    return read_decision(proposal) if is_ready(proposal) else None
