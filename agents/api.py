"""What agents call (api.md). Parse, look up outside, call one operation, answer."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Header, Query, Router
from ninja.security import HttpBearer
from pydantic import ValidationError
from structlog.contextvars import bind_contextvars

from journal import log
from journal.errors import (
    DomainError,
    Invalid,
    NotFound,
    ToolNotAllowed,
)
from reviews import settlements
from reviews.claims import Claim
from reviews.executors import Outcome, base
from reviews.models import Execution, Proposal

from . import (
    acknowledging,
    checkpoints,
    idempotency,
    intake,
    keys,
    outcomes,
    own,
    proposals,
)
from .idempotency import Stored
from .keys import AgentScope
from .models import Agent, AgentKey, Checkpoint
from .schemas import (
    AcknowledgeIn,
    BatchIn,
    BatchItemIn,
    BatchOut,
    FinishIn,
    OutcomeIn,
    ProposalIn,
    ProposalOut,
    ProposalPage,
    RedeemIn,
    RedeemOut,
    ResumeOut,
    RevisionIn,
    ThreadOut,
    ToolOut,
    WhoamiOut,
)

LONGEST_WAIT = 60  # seconds
PAGE = 50
# The defaults stand twice: ninja reads the inner one, a caller in Python the outer.
Wait = Annotated[int, Query(0, ge=0, le=LONGEST_WAIT)]
IdempotencyHeader = Annotated[str | None, Header(None, alias="Idempotency-Key")]


class AgentAuth(HttpBearer):
    """`Authorization: Bearer <agent key>`, read anew on every call."""

    def authenticate(self, request: HttpRequest, token: str) -> AgentKey:
        key = keys.authenticate(token)
        needed = AgentScope.READ if request.method == "GET" else AgentScope.PROPOSE
        if needed not in key.scopes:
            raise ToolNotAllowed("This key's scopes do not cover the call.")
        bind_contextvars(agent=key.agent.slug)
        return key


router = Router(auth=AgentAuth(), tags=["agents"])


def agent_of(request: HttpRequest) -> Agent:
    """The calling agent, as `AgentAuth` found it."""
    key: AgentKey = request.auth  # type: ignore[attr-defined]
    return key.agent


def note_refusal(request: HttpRequest, error: DomainError) -> None:
    """A refused call of a known agent is a log record; reading is not."""
    key = getattr(request, "auth", None)
    if not isinstance(key, AgentKey) or request.method == "GET":
        return
    if not isinstance(error, proposals.NOT_LOGGED):
        proposals.log_refusal(
            agent=key.agent,
            error=error,
            call=request.path[:200],
            unasked=int(request.headers.get("Holdpoint-Unasked", "0")),
        )


def answered(body: dict[str, Any], *, status: int = 200, wait: int = 0) -> HttpResponse:
    """A proposal as JSON; the header tells hitl.longpoll that there is to wait."""
    bind_contextvars(proposal=body["id"])
    response = JsonResponse(body, status=status)
    if wait and not outcomes.is_final(body):
        response["Holdpoint-Wait"] = f"{body['id']};{len(body['messages'])}"
    return response


def _own(request: HttpRequest, proposal_id: str) -> Proposal:
    proposal = outcomes.load(agent_of(request).slug, proposal_id)
    if proposal is None:
        raise NotFound
    return proposal


@router.post("/proposals", response={201: ProposalOut, 200: ProposalOut})
def propose(
    request: HttpRequest,
    body: ProposalIn,
    wait: Wait = 0,
    key: IdempotencyHeader = None,
) -> HttpResponse:
    """Propose one action. 200 with `Idempotent-Replayed: true` on replay."""
    agent = agent_of(request)
    stored = _propose(agent, key, _said(body), body)
    return _replaying(
        stored.replayed, answered(stored.body, status=_status(stored), wait=wait)
    )


def _said(body: ProposalIn) -> dict[str, Any]:
    """What a key stands for. Who names no callback sends what the release before knew,
    so that a key given then is still known."""
    said = body.model_dump(mode="json", exclude={"idempotency_key"})
    if body.callback_url is None:
        del said["callback_url"]
    return said


def _status(stored: Stored) -> int:
    return 200 if stored.replayed else stored.status


def _replaying(replayed: bool, response: HttpResponse) -> HttpResponse:
    if replayed:
        response["Idempotent-Replayed"] = "true"
    return response


def _propose(agent: Agent, header: str | None, said: Any, body: ProposalIn) -> Stored:
    key = intake.key_of(header, "POST", "/proposals", said)
    stored = idempotency.replay(agent, key.text, key.fingerprint)
    if stored is not None:
        return stored
    asked = intake.asked_to_propose(agent, body)
    return proposals.propose(agent=agent, key=key, asked=asked)


@router.post("/proposals/batch", response=BatchOut)
def propose_batch(request: HttpRequest, body: BatchIn) -> HttpResponse:
    """Up to 200 proposals, one transaction each, answered per item."""
    agent = agent_of(request)
    items = [_propose_item(request, agent, item) for item in body.items]
    return JsonResponse({"items": items})


def _propose_item(
    request: HttpRequest, agent: Agent, said: dict[str, Any]
) -> dict[str, Any]:
    try:
        item = _checked_item(said)
        stored = _propose(
            agent,
            item.idempotency_key,
            _said(item),
            item,
        )
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
        "status": _status(stored),
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


@router.get("/proposals", response=ProposalPage)
def list_proposals(
    request: HttpRequest,
    status: str = "",
    thread: str = "",
    cursor: str = "",
) -> HttpResponse:
    """This agent's own proposals, newest first."""
    page = own.own_proposals(
        agent_of(request).slug, status=status, thread=thread, cursor=cursor, size=PAGE
    )
    return JsonResponse(
        {
            "items": outcomes.describe_all(page.items),
            "next_cursor": page.next_cursor,
        }
    )


@router.get("/proposals/{proposal_id}", response=ProposalOut)
def get_proposal(
    request: HttpRequest, proposal_id: str, wait: Wait = 0
) -> HttpResponse:
    """One proposal; with `wait` as soon as there is something to do."""
    return answered(outcomes.describe(_own(request, proposal_id)), wait=wait)


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
        return _replaying(stored.replayed, answered(stored.body))
    proposal = _own(request, proposal_id)
    asked = intake.asked_to_revise(agent, proposal.thread, proposal.tool_name, body)
    stored = proposals.revise(
        agent=agent, key=call, proposal_id=proposal_id, asked=asked
    )
    return _replaying(stored.replayed, answered(stored.body))


@router.post("/proposals/{proposal_id}/withdraw", response=ProposalOut)
def withdraw(request: HttpRequest, proposal_id: str) -> HttpResponse:
    """Take it back."""
    proposals.withdraw(agent=agent_of(request), proposal_id=proposal_id)
    return answered(outcomes.describe(_own(request, proposal_id)))


@router.post("/proposals/{proposal_id}/acknowledge", response=ProposalOut)
def acknowledge(
    request: HttpRequest, proposal_id: str, body: AcknowledgeIn
) -> HttpResponse:
    """The agent has this outcome and needs to hear of it no more. Again is as good."""
    acknowledging.acknowledge(
        agent=agent_of(request), proposal_id=proposal_id, outcome=body.outcome
    )
    return answered(outcomes.describe(_own(request, proposal_id)))


@router.post("/grants/redeem", response=RedeemOut)
def redeem(
    request: HttpRequest, body: RedeemIn, key: IdempotencyHeader = None
) -> HttpResponse:
    """Take the one-use grant of a tool that the agent performs itself. `grant` in the
    answer is for the tool's service, which verifies it with the keys of
    `/.well-known/jwks.json`. The same `Idempotency-Key` gets the same claim again until
    its lease is over, with `Idempotent-Replayed: true`; without it, or with another, a
    grant is redeemed once."""
    claim = settlements.redeem(
        token=body.token, agent=agent_of(request).slug, key=intake.checked_key(key)
    )
    return _replaying(claim.replayed, JsonResponse(_redeemed(claim)))


def _redeemed(claim: Claim) -> dict[str, Any]:
    call = claim.call
    return {
        "execution": call.execution,
        "tool": call.tool,
        "tool_version": call.tool_version,
        "args": call.args,
        "preconditions": call.preconditions,
        "action_hash": claim.execution.grant.action_hash,
        "idempotency_key": call.idempotency_key,
        "fence": claim.fence,
        "lease_until": outcomes.stamp(claim.execution.lease_until),
        "grant": call.grant,
    }


@router.post("/executions/{execution_id}/outcome", response=ProposalOut)
def report_outcome(
    request: HttpRequest, execution_id: str, body: OutcomeIn
) -> HttpResponse:
    """What became of the effect that the agent performed, under its fence."""
    agent = agent_of(request)
    execution = _own_execution(agent, execution_id)
    settlements.report(
        execution=execution,
        fence=body.fence,
        action_hash=body.action_hash,
        outcome=_outcome(body),
        actor=log.Actor("agent", agent.slug),
    )
    return answered(outcomes.describe(_own(request, execution.proposal_id)))


def _outcome(body: OutcomeIn) -> Outcome:
    """In the bounds that every executor's answer has."""
    if body.status == "succeeded":
        return base.succeeded(body.result)
    made = base.failed if body.status == "failed" else base.unknown
    return made(body.code, body.detail)


def _own_execution(agent: Agent, execution_id: str) -> Execution:
    execution = (
        Execution.objects.select_related("grant")
        .filter(pk=execution_id, proposal__agent=agent.slug, by_agent=True)
        .first()
    )
    if execution is None:
        raise NotFound
    return execution


@router.get("/threads/{thread}/checkpoint", response=ResumeOut)
def resume(request: HttpRequest, thread: str) -> HttpResponse:
    """The latest checkpoint and the structured outcome to resume with."""
    agent = agent_of(request)
    row = own.thread(agent, thread)
    checkpoint = checkpoints.latest(row)
    proposal_id = checkpoint.proposal if checkpoint else ""
    proposal = outcomes.load(agent.slug, proposal_id) if proposal_id else None
    outcome = outcomes.describe(proposal) if proposal else None
    return JsonResponse(
        {
            "thread": row.name,
            "status": row.status,
            "checkpoint": _checkpoint(checkpoint) if checkpoint else None,
            "outcome": outcome,
            "acknowledged": bool(outcome and outcome["acknowledged_at"]),
        }
    )


def _checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    blob = checkpoints.blob_of(checkpoint)
    return {
        "number": checkpoint.number,
        "proposal": checkpoint.proposal,
        "summary": checkpoint.summary,
        "state": checkpoint.state,
        "blob": None if blob is None else base64.b64encode(blob).decode(),
        "blob_sha256": checkpoint.blob_digest or None,
        "resume_at": checkpoint.resume_at,
        "created_at": outcomes.stamp(checkpoint.created_at),
    }


@router.post("/threads/{thread}/finish", response=ThreadOut)
def finish(request: HttpRequest, thread: str, body: FinishIn) -> HttpResponse:
    """The run is over; what still waits is withdrawn."""
    row = proposals.finish(agent=agent_of(request), name=thread, result=body.result)
    return JsonResponse(
        {"thread": row.name, "status": row.status, "result": row.result}
    )


@router.get("/tools", response=list[ToolOut])
def list_tools(request: HttpRequest) -> HttpResponse:
    """What this agent may propose, with the schema of its arguments."""
    return JsonResponse(own.tools_of(agent_of(request)), safe=False)


@router.get("/whoami", response=WhoamiOut)
def whoami(request: HttpRequest) -> HttpResponse:
    """Who the key is."""
    key: AgentKey = request.auth  # type: ignore[attr-defined]
    return JsonResponse(own.identity(key))
