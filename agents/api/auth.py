"""What every call of an agent shares: whose it is, and how it is answered."""

from __future__ import annotations

import re
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Header, Query
from ninja.security import HttpBearer
from structlog.contextvars import bind_contextvars

from agents import keys, proposals, representation
from agents.keys import AgentScope
from agents.models import Agent, AgentKey
from journal.errors import DomainError, NotFound, ToolNotAllowed
from reviews.models import Proposal

LONGEST_WAIT = 60  # seconds
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
            unasked=_unasked(request.headers.get("Holdpoint-Unasked", "")),
        )


def _unasked(text: str) -> int:
    """What hitl.live.per_key_limit counted; it lets nobody else's header through."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


def answered(body: dict[str, Any], *, status: int = 200, wait: int = 0) -> HttpResponse:
    """A proposal as JSON; a header tells hitl.live.long_poll that there is to wait."""
    bind_contextvars(proposal=body["id"])
    response = JsonResponse(body, status=status)
    if wait and not representation.is_final(body):
        response["Holdpoint-Wait"] = f"{body['id']};{len(body['messages'])}"
    return response


def own_proposal(request: HttpRequest, proposal_id: str) -> Proposal:
    """Raises NotFound."""
    proposal = representation.load(agent_of(request).slug, proposal_id)
    if proposal is None:
        raise NotFound
    return proposal


def replaying(replayed: bool, response: HttpResponse) -> HttpResponse:
    """The same, and that it is the answer to an earlier call."""
    if replayed:
        response["Idempotent-Replayed"] = "true"
    return response
