"""An agent's runs: taken up again and finished; and what it may do."""

from __future__ import annotations

import base64
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Router

from agents import checkpoints, proposals, representation, selectors
from agents.models import AgentKey, Checkpoint
from agents.schemas import FinishIn, ResumeOut, ThreadOut, ToolOut, WhoamiOut

from .auth import AgentAuth, agent_of

router = Router(auth=AgentAuth(), tags=["agents"])


@router.get("/threads/{thread}/checkpoint", response=ResumeOut)
def resume(request: HttpRequest, thread: str) -> HttpResponse:
    """The latest checkpoint and the structured outcome to resume with."""
    agent = agent_of(request)
    row = selectors.thread(agent, thread)
    checkpoint = checkpoints.latest(row)
    proposal_id = checkpoint.proposal if checkpoint else ""
    proposal = representation.load(agent.slug, proposal_id) if proposal_id else None
    outcome = representation.describe(proposal) if proposal else None
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
        "created_at": representation.stamp(checkpoint.created_at),
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
    return JsonResponse(selectors.tools_of(agent_of(request)), safe=False)


@router.get("/whoami", response=WhoamiOut)
def whoami(request: HttpRequest) -> HttpResponse:
    """Who the key is."""
    key: AgentKey = request.auth  # type: ignore[attr-defined]
    return JsonResponse(selectors.identity(key))
