"""Endpoints for an agent's runs, its tools and its identity."""

from __future__ import annotations

import base64
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from agents import checkpoints, proposals, representation, selectors
from agents.models import AgentKey, Checkpoint
from agents.schemas.threads import FinishIn, ResumeOut, ThreadOut, ToolOut, WhoamiOut

from .auth import AgentAuth, get_calling_agent

router = Router(auth=AgentAuth(), tags=["agents"], by_alias=True)


@router.get("/threads/{thread}/checkpoint", response=ResumeOut)
def resume(request: HttpRequest, thread: str) -> HttpResponse:
    """Get a run's latest checkpoint, and the proposal that it waited for with its
    outcome. `acknowledged` is true when the agent has acknowledged that outcome."""
    agent = get_calling_agent(request)
    row = selectors.load_thread(agent, thread)
    checkpoint = checkpoints.find_latest_checkpoint(row)
    proposal_id = checkpoint.proposal if checkpoint else ""
    proposal = (
        representation.find_proposal(agent.slug, proposal_id) if proposal_id else None
    )
    outcome = representation.build_proposal_json(proposal) if proposal else None
    return JsonResponse(
        {
            "thread": row.name,
            "status": row.status,
            "checkpoint": _build_checkpoint(checkpoint) if checkpoint else None,
            "outcome": outcome,
            "acknowledged": bool(outcome and outcome["acknowledged_at"]),
        }
    )


def _build_checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    blob = checkpoints.decrypt_blob(checkpoint)
    return {
        "number": checkpoint.number,
        "proposal": checkpoint.proposal,
        "summary": checkpoint.summary,
        "state": checkpoint.state,
        "blob": None if blob is None else base64.b64encode(blob).decode(),
        "blob_sha256": checkpoint.blob_digest or None,
        "resume_at": checkpoint.resume_at,
        "created_at": representation.format_timestamp(checkpoint.created_at),
    }


@router.post("/threads/{thread}/finish", response=ThreadOut)
def finish(request: HttpRequest, thread: str, body: FinishIn) -> HttpResponse:
    """Finish a run. Its open requests are withdrawn and its unredeemed grants revoked.
    Finishing it again with the same result returns the same response."""
    row = proposals.finish_thread(
        agent=get_calling_agent(request), name=thread, result=body.result
    )
    return JsonResponse(
        {"thread": row.name, "status": row.status, "result": row.result}
    )


@router.get("/tools", response=list[ToolOut])
def list_tools(request: HttpRequest) -> HttpResponse:
    """List the tools that this agent may propose, with the JSON Schema of their
    arguments."""
    return JsonResponse(
        selectors.list_allowed_tools(get_calling_agent(request)), safe=False
    )


@router.get("/whoami", response=WhoamiOut)
def whoami(request: HttpRequest) -> HttpResponse:
    """Get the agent that this key belongs to, the key's scopes, and whether the agent
    is running, paused or stopped."""
    key: AgentKey = request.auth  # type: ignore[attr-defined]
    return JsonResponse(selectors.build_identity(key))
