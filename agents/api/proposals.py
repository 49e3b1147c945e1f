"""Endpoints for proposals: propose one or many, list, read, revise, withdraw, and
acknowledge an outcome."""

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
    """Propose an action under an idempotency key, or return the stored answer of an
    earlier call with that key. Raises the agents' codes of api.md."""
    key = intake.key_of(header, "POST", "/proposals", _said(body))
    stored = idempotency.replay(agent, key.text, key.fingerprint)
    if stored is not None:
        return stored
    intake.check_key(key)
    asked = intake.asked_to_propose(agent, body)
    return proposals.propose(agent=agent, key=key, asked=asked)


def _said(body: ProposalIn) -> dict[str, Any]:
    """Return the part of a body that its key's fingerprint covers.

    A missing `callback_url` is left out: earlier releases did not have the field, and a
    key that was first used then must keep its fingerprint.
    """
    said = body.model_dump(mode="json", exclude={"idempotency_key"})
    if body.callback_url is None:
        del said["callback_url"]
    return said


def status_of(stored: Stored) -> int:
    """Return the status of the answer: 200 for a replayed one."""
    return 200 if stored.replayed else stored.status


def propose_item(
    request: HttpRequest, agent: Agent, said: dict[str, Any]
) -> dict[str, Any]:
    """Propose one item of a batch and build its answer. A refused item becomes a
    problem in the answer and does not affect the other items."""
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
    """Propose one action. A repeated call with the same `Idempotency-Key` and body gets
    the first answer again, with status 200 and `Idempotent-Replayed: true`. With `wait`
    (seconds) the call returns as soon as there is something to act upon."""
    agent = agent_of(request)
    stored = propose_action(agent, key, body)
    said = stored.body
    if wait and stored.replayed:  # a caller that waits needs the current state
        said = representation.describe(own_proposal(request, said["id"]))
    return replaying(
        stored.replayed,
        answered(said, status=status_of(stored), wait=wait),
    )


@router.post("/proposals/batch", response=BatchOut)
def propose_batch(request: HttpRequest, body: BatchIn) -> HttpResponse:
    """Propose up to 200 actions. Each is its own transaction and has its own
    `idempotency_key`, status and answer."""
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
    """List this agent's proposals, newest first, optionally of one status or thread.
    Pass `next_cursor` as `cursor` to get the next page."""
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
    """Get one proposal. With `wait` (seconds) the call returns as soon as there is
    something to act upon."""
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
    """Replace what is proposed. The old revision is kept; the votes on it no longer
    count."""
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
    """Withdraw a proposal. Its open request ends; a grant that has not been used is
    revoked."""
    proposals.withdraw(agent=agent_of(request), proposal_id=proposal_id)
    return answered(representation.describe(own_proposal(request, proposal_id)))


@router.post("/proposals/{proposal_id}/acknowledge", response=ProposalOut)
def acknowledge(
    request: HttpRequest, proposal_id: str, body: AcknowledgeIn
) -> HttpResponse:
    """Acknowledge an outcome, so that it is not offered or sent again. A repeated call
    changes nothing."""
    acknowledgements.acknowledge(
        agent=agent_of(request), proposal_id=proposal_id, outcome=body.outcome
    )
    return answered(representation.describe(own_proposal(request, proposal_id)))
