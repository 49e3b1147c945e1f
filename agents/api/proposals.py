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
    messages,
    proposals,
    representation,
    selectors,
)
from agents.idempotency import StoredAnswer
from agents.models import Agent
from agents.schemas.executions import AcknowledgeIn
from agents.schemas.proposals import (
    BatchIn,
    BatchItemIn,
    BatchOut,
    MessageIn,
    ProposalIn,
    ProposalOut,
    ProposalPage,
    RevisionIn,
)
from journal.errors import DomainError, InvalidInput
from reviews.choices import MessageKind
from reviews.outbound.trace_context import HEADER, parse_traceparent

from .auth import (
    AgentAuth,
    RequiredIdempotencyHeader,
    Wait,
    build_proposal_response,
    get_calling_agent,
    load_own_proposal,
    mark_replayed,
    record_refusal,
    respond_with_proposal,
)


def propose_idempotently(
    agent: Agent, header: str | None, body: ProposalIn
) -> StoredAnswer:
    """Propose an action under an idempotency key, or return the stored answer of an
    earlier call with that key. Raises what `propose_action` raises."""
    # Without `traceparent`: a repeated call may come from another span. Nor is the
    # description of the tool a part of what is proposed.
    aside = {"idempotency_key", "traceparent", "tool_description"}
    keyed = body.model_dump(mode="json", exclude=aside)
    key = intake.parse_call_key(header, "POST", "/proposals", keyed)
    stored = idempotency.find_stored_answer(agent, key)
    if stored is not None:
        return stored
    intake.check_key_contents(key)
    asked = intake.build_proposal_input(agent, body)
    return proposals.propose_action(agent=agent, key=key, asked=asked)


def fill_traceparent(request: HttpRequest, body: ProposalIn) -> None:
    """Take the request's `traceparent` header where the body has none. An invalid
    header is ignored, as W3C Trace Context requires."""
    parent = parse_traceparent(request.headers.get(HEADER, ""))
    if body.traceparent is None and parent is not None:
        body.traceparent = str(parent)


def compute_http_status(stored: StoredAnswer) -> int:
    """Return the status of the answer: 200 for a replayed one."""
    return 200 if stored.replayed else stored.status


def propose_item(
    request: HttpRequest, agent: Agent, raw_item: dict[str, Any]
) -> dict[str, Any]:
    """Propose one item of a batch and build its answer. A refused item becomes a
    problem in the answer and does not affect the other items."""
    try:
        item = _parse_item(raw_item)
        fill_traceparent(request, item)
        stored = propose_idempotently(agent, item.idempotency_key, item)
    except DomainError as error:
        record_refusal(request, error)
        problem = {
            "code": error.code,
            "detail": error.detail,
            "errors": error.errors,
            **error.facts,
        }
        return {"status": error.status, "problem": problem}
    return {
        "status": compute_http_status(stored),
        "replayed": stored.replayed,
        "proposal": stored.body,
    }


def _parse_item(raw_item: dict[str, Any]) -> BatchItemIn:
    try:
        return BatchItemIn.model_validate(raw_item)
    except ValidationError as error:
        raise InvalidInput(
            errors=[
                {
                    "path": ".".join(str(part) for part in fault["loc"]),
                    "message": fault["msg"],
                }
                for fault in error.errors()
            ]
        ) from None


PAGE_SIZE = 50
router = Router(auth=AgentAuth(), tags=["agents"], by_alias=True)


@router.post("/proposals", response={201: ProposalOut, 200: ProposalOut})
def propose(
    request: HttpRequest,
    body: ProposalIn,
    wait: Wait = 0,
    key: RequiredIdempotencyHeader = None,
) -> HttpResponse:
    """Propose one action. A repeated call with the same `Idempotency-Key` and body
    returns the first response again, with status 200 and `Idempotent-Replayed: true`;
    a blocked call is judged again once the policy or the agent's permissions have
    changed. With `wait` (seconds) the call returns as soon as the agent can act on the
    result, at the latest after that time."""
    agent = get_calling_agent(request)
    fill_traceparent(request, body)
    stored = propose_idempotently(agent, key, body)
    proposal_json = stored.body
    if wait and stored.replayed:  # a caller that waits needs the current state
        proposal_json = representation.build_proposal_json(
            load_own_proposal(request, proposal_json["id"])
        )
    return mark_replayed(
        stored.replayed,
        build_proposal_response(
            proposal_json, status=compute_http_status(stored), wait=wait
        ),
    )


@router.post("/proposals/batch", response=BatchOut)
def propose_batch(request: HttpRequest, body: BatchIn) -> HttpResponse:
    """Propose up to 200 actions. Each has its own transaction, `idempotency_key`,
    status and response."""
    agent = get_calling_agent(request)
    items = [propose_item(request, agent, item) for item in body.items]
    return JsonResponse({"items": items})


@router.get("/proposals", response=ProposalPage)
def list_proposals(
    request: HttpRequest,
    status: str = "",
    thread: str = "",
    cursor: str = "",
) -> HttpResponse:
    """List this agent's proposals, newest first, optionally filtered by status or
    thread. Pass `next_cursor` as `cursor` to get the next page."""
    items, next_cursor = selectors.list_own_proposals(
        get_calling_agent(request).slug,
        status=status,
        thread=thread,
        cursor=cursor,
        size=PAGE_SIZE,
    )
    built = [representation.build_proposal_json(proposal) for proposal in items]
    return JsonResponse({"items": built, "next_cursor": next_cursor})


@router.get("/proposals/{proposal_id}", response=ProposalOut)
def get_proposal(
    request: HttpRequest, proposal_id: str, wait: Wait = 0
) -> HttpResponse:
    """Get one proposal. With `wait` (seconds) the call returns as soon as the agent can
    act on the result, at the latest after that time."""
    return respond_with_proposal(request, proposal_id, wait=wait)


@router.post("/proposals/{proposal_id}/revisions", response=ProposalOut)
def revise(
    request: HttpRequest,
    proposal_id: str,
    body: RevisionIn,
    key: RequiredIdempotencyHeader = None,
) -> HttpResponse:
    """Revise a proposal. The previous revision is kept; the votes on it no longer
    count."""
    agent = get_calling_agent(request)
    call = intake.parse_call_key(
        key, "POST", f"/proposals/{proposal_id}/revisions", body.model_dump(mode="json")
    )
    stored = idempotency.find_stored_answer(agent, call)
    if stored is None:
        intake.check_key_contents(call)
        proposal = load_own_proposal(request, proposal_id)
        asked = intake.build_revision_input(
            agent, proposal.thread, proposal.tool_name, body
        )
        stored = proposals.revise_proposal(
            agent=agent, key=call, proposal_id=proposal_id, asked=asked
        )
    return mark_replayed(stored.replayed, build_proposal_response(stored.body))


@router.post("/proposals/{proposal_id}/messages", response=ProposalOut)
def send_message(
    request: HttpRequest,
    proposal_id: str,
    body: MessageIn,
    key: RequiredIdempotencyHeader = None,
) -> HttpResponse:
    """Answer a reviewer's question about a pending proposal, or ask the reviewers one.
    The text is redacted like every text of an agent. Both sides may open a few rounds
    each; then 409 `rounds`. An answer that nobody waits for is 409 `no_question`. A
    repeated call with the same `Idempotency-Key` and body returns the first response
    again, with `Idempotent-Replayed: true`."""
    agent = get_calling_agent(request)
    call = intake.parse_call_key(
        key, "POST", f"/proposals/{proposal_id}/messages", body.model_dump(mode="json")
    )
    stored = idempotency.find_stored_answer(agent, call)
    if stored is None:
        intake.check_key_contents(call)
        stored = messages.send_message(
            agent=agent,
            key=call,
            proposal_id=proposal_id,
            kind=MessageKind(body.kind),
            text=body.text,
            round_=body.round or 0,
        )
    return mark_replayed(stored.replayed, build_proposal_response(stored.body))


@router.post("/proposals/{proposal_id}/withdraw", response=ProposalOut)
def withdraw(request: HttpRequest, proposal_id: str) -> HttpResponse:
    """Withdraw a proposal. Its open request is closed, and an unused grant is
    revoked."""
    proposals.withdraw_proposal(
        agent=get_calling_agent(request), proposal_id=proposal_id
    )
    return respond_with_proposal(request, proposal_id)


@router.post("/proposals/{proposal_id}/acknowledge", response=ProposalOut)
def acknowledge(
    request: HttpRequest, proposal_id: str, body: AcknowledgeIn
) -> HttpResponse:
    """Acknowledge an outcome, so that it is not offered or sent again. A repeated call
    changes nothing."""
    acknowledgements.acknowledge_outcome(
        agent=get_calling_agent(request), proposal_id=proposal_id, outcome=body.outcome
    )
    return respond_with_proposal(request, proposal_id)
