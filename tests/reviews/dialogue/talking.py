"""What people and an agent say about a request, through the operations."""

from __future__ import annotations

import itertools

from agents import intake, messages, representation
from agents.idempotency import StoredAnswer
from policies.models import Person
from reviews.choices import MessageKind
from reviews.dialogue import messages as people
from reviews.models import ApprovalRequest, Message
from tests.conftest import Gate

_numbers = itertools.count(1)


def ask(
    request: ApprovalRequest,
    person: Person,
    text: str = "Which order?",
    version: int = 0,
) -> Message:
    sent = people.ask_agent(
        request_id=request.pk,
        person=person,
        version=version or request.version,
        text=text,
    )
    assert sent is not None
    return sent


def send_back(
    request: ApprovalRequest, person: Person, text: str = "Halve it.", version: int = 0
) -> Message:
    sent = people.send_back(
        request_id=request.pk,
        person=person,
        version=version or request.version,
        text=text,
    )
    assert sent is not None
    return sent


def reply(
    gate: Gate,
    request: ApprovalRequest,
    text: str = "The one of Monday.",
    kind: MessageKind = MessageKind.ANSWER,
    round_: int = 0,
    key: str = "",
) -> StoredAnswer:
    """A message of the agent."""
    call = intake.parse_call_key(
        key or f"message-{next(_numbers)}", "POST", "/m", [kind, text, round_]
    )
    return messages.send_message(
        agent=gate.agent,
        key=call,
        proposal_id=request.proposal_id,
        kind=kind,
        text=text,
        round_=round_,
    )


def shown(request: ApprovalRequest) -> dict[str, object]:
    """The proposal as its agent sees it."""
    proposal = representation.find_proposal("riley", request.proposal_id)
    assert proposal is not None
    return representation.build_proposal_json(proposal)
