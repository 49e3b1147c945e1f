"""Proposals: made, read, revised, taken back, and their outcomes acknowledged.

Proposing one action, alone or as one of many.
"""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router
from pydantic import ValidationError

from agents import (
    acknowledgements,
    idempotency,
    intake,
    proposals,
    representation,
    selectors,
)
from agents.idempotency import Stored
from agents.models import Agent
from agents.schemas import (
    AcknowledgeIn,
    BatchIn,
    BatchItemIn,
    BatchOut,
    ProposalIn,
    ProposalOut,
    ProposalPage,
    RevisionIn,
)
from journal.errors import DomainError, Invalid

from .auth import (
    AgentAuth,
    IdempotencyHeader,
    Wait,
    agent_of,
    answered,
    note_refusal,
    own_proposal,
    replaying,
)


def propose_action(agent: Agent, header: str | None, body: ProposalIn) -> Stored:
    """What this key was answered with, now or the first time. Raises the agents' codes
    of api.md."""
    key = intake.key_of(header, "POST", "/proposals", _said(body))
    stored = idempotency.replay(agent, key.text, key.fingerprint)
    if stored is not None:
        return stored
    intake.check_key(key)
    asked = intake.asked_to_propose(agent, body)
    return proposals.propose(agent=agent, key=key, asked=asked)


def _said(body: ProposalIn) -> dict[str, Any]:
    """What a key stands for. Who names no callback sends what the release before knew,
    so that a key given then is still known."""
    said = body.model_dump(mode="json", exclude={"idempotency_key"})
    if body.callback_url is None:
        del said["callback_url"]
    return said


def status_of(stored: Stored) -> int:
    """200 for what was there already."""
    return 200 if stored.replayed else stored.status


def propose_item(
    request: HttpRequest, agent: Agent, said: dict[str, Any]
) -> dict[str, Any]:
    """The answer of one item of a batch, whatever becomes of the others."""
    try:
        item = _checked_item(said)
        stored = propose_action(agent, item.idempotency_key, item)
    except DomainError as error:
        note_refusal(request, error)
        problem = {
            "code": error.code,
            "detail": error.detail,
            "errors": error.errors,
            **error.facts,
        }
        return {"status": error.status, "problem": problem}
    return {
        "status": status_of(stored),
        "replayed": stored.replayed,
        "proposal": stored.body,
    }


def _checked_item(said: dict[str, Any]) -> BatchItemIn:
    try:
        return BatchItemIn.model_validate(said)
    except ValidationError as error:
        raise Invalid(
            errors=[
                {
                    "path": ".".join(str(part) for part in fault["loc"]),
                    "message": fault["msg"],
                }
                for fault in error.errors()
            ]
        ) from None


PAGE = 50
router = Router(auth=AgentAuth(), tags=["agents"])


@router.post("/proposals", response={201: ProposalOut, 200: ProposalOut})
def propose(
    request: HttpRequest,
    body: ProposalIn,
    wait: Wait = 0,
    key: IdempotencyHeader = None,
) -> HttpResponse:
    """Propose one action. 200 with `Idempotent-Replayed: true` on replay."""
    agent = agent_of(request)
    stored = propose_action(agent, key, body)
    said = stored.body
    if wait and stored.replayed:  # whoever waits asks what became of it meanwhile
        said = representation.describe(own_proposal(request, said["id"]))
    return replaying(
        stored.replayed,
        answered(said, status=status_of(stored), wait=wait),
    )


@router.post("/proposals/batch", response=BatchOut)
def propose_batch(request: HttpRequest, body: BatchIn) -> HttpResponse:
    """Up to 200 proposals, one transaction each, answered per item."""
    agent = agent_of(request)
    items = [propose_item(request, agent, item) for item in body.items]
    return JsonResponse({"items": items})


@router.get("/proposals", response=ProposalPage)
def list_proposals(
    request: HttpRequest,
    status: str = "",
    thread: str = "",
    cursor: str = "",
) -> HttpResponse:
    """This agent's own proposals, newest first."""
    page = selectors.own_proposals(
        agent_of(request).slug, status=status, thread=thread, cursor=cursor, size=PAGE
    )
    return JsonResponse(
        {
            "items": representation.describe_all(page.items),
            "next_cursor": page.next_cursor,
        }
    )


@router.get("/proposals/{proposal_id}", response=ProposalOut)
def get_proposal(
    request: HttpRequest, proposal_id: str, wait: Wait = 0
) -> HttpResponse:
    """One proposal; with `wait` as soon as there is something to do."""
    return answered(
        representation.describe(own_proposal(request, proposal_id)), wait=wait
    )


@router.post("/proposals/{proposal_id}/revisions", response=ProposalOut)
def revise(
    request: HttpRequest,
    proposal_id: str,
    body: RevisionIn,
    key: IdempotencyHeader = None,
) -> HttpResponse:
    """Replace what is proposed; the old revision is kept, its votes are void."""
    agent = agent_of(request)
    call = intake.key_of(
        key, "POST", f"/proposals/{proposal_id}/revisions", body.model_dump(mode="json")
    )
    stored = idempotency.replay(agent, call.text, call.fingerprint)
    if stored is not None:
        return replaying(stored.replayed, answered(stored.body))
    intake.check_key(call)
    proposal = own_proposal(request, proposal_id)
    asked = intake.asked_to_revise(agent, proposal.thread, proposal.tool_name, body)
    stored = proposals.revise(
        agent=agent, key=call, proposal_id=proposal_id, asked=asked
    )
    return replaying(stored.replayed, answered(stored.body))


@router.post("/proposals/{proposal_id}/withdraw", response=ProposalOut)
def withdraw(request: HttpRequest, proposal_id: str) -> HttpResponse:
    """Take it back."""
    proposals.withdraw(agent=agent_of(request), proposal_id=proposal_id)
    return answered(representation.describe(own_proposal(request, proposal_id)))


@router.post("/proposals/{proposal_id}/acknowledge", response=ProposalOut)
def acknowledge(
    request: HttpRequest, proposal_id: str, body: AcknowledgeIn
) -> HttpResponse:
    """The agent has this outcome and needs to hear of it no more. Again is as good."""
    acknowledgements.acknowledge(
        agent=agent_of(request), proposal_id=proposal_id, outcome=body.outcome
    )
    return answered(representation.describe(own_proposal(request, proposal_id)))
