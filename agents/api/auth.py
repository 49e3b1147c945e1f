"""What all endpoints for agents share: authentication, common parameters, responses,
and the log records of refused calls."""

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

MAX_WAIT = 60  # seconds
# The default is given twice: ninja reads the one in `Query` and `Header`, a caller in
# Python the one of the endpoint's signature.
Wait = Annotated[int, Query(0, ge=0, le=MAX_WAIT)]
IdempotencyHeader = Annotated[str | None, Header(None, alias="Idempotency-Key")]
# Of a call that is refused without the header. It has a default, so that the refusal is
# our own; the OpenAPI document says by this description that it is required.
KEY_REQUIRED = "Required: a call without it is refused."
RequiredIdempotencyHeader = Annotated[
    str | None, Header(None, alias="Idempotency-Key", description=KEY_REQUIRED)
]


class AgentAuth(HttpBearer):
    """`Authorization: Bearer <agent key>`. The key's row is read on every call, so a
    revocation takes effect at once. A GET needs the scope `read`, any other call
    `propose`."""

    def authenticate(self, request: HttpRequest, token: str) -> AgentKey:
        key = keys.authenticate_key(token)
        needed = AgentScope.READ if request.method == "GET" else AgentScope.PROPOSE
        if needed not in key.scopes:
            raise ToolNotAllowed("This key's scopes do not cover the call.")
        bind_contextvars(agent=key.agent.slug)
        return key


def get_calling_agent(request: HttpRequest) -> Agent:
    """Return the agent that `AgentAuth` authenticated."""
    key: AgentKey = request.auth  # type: ignore[attr-defined]
    return key.agent


def record_refusal(request: HttpRequest, error: DomainError) -> None:
    """Log the refused call of an authenticated agent, unless it only reads or the
    refusal is of a kind that is never logged."""
    key = getattr(request, "auth", None)
    if not isinstance(key, AgentKey) or request.method == "GET":
        return
    if not isinstance(error, proposals.NOT_LOGGED):
        proposals.log_refusal(
            agent=key.agent,
            error=error,
            call=request.path[:200],
            unasked=_parse_unasked(request.headers.get("Counterseal-Unasked", "")),
        )


def _parse_unasked(text: str) -> int:
    """Parse the number of calls that hitl.live.per_key_limit refused before this one.
    It removes this header from a client's own request, so the value is trusted."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else 0


def build_proposal_response(
    body: dict[str, Any], *, status: int = 200, wait: int = 0
) -> HttpResponse:
    """Build the response with a proposal. When it is not final and the client asked to
    wait (`wait` in seconds), a header tells hitl.live.long_poll to hold the response.
    """
    bind_contextvars(proposal=body["id"])
    response = JsonResponse(body, status=status)
    if wait and not representation.is_final(body):
        received = representation.count_received(body)
        response["Counterseal-Wait"] = f"{body['id']};{received}"
    return response


def respond_with_proposal(
    request: HttpRequest, proposal_id: str, *, wait: int = 0
) -> HttpResponse:
    """Build the response with the calling agent's proposal as it is now. Raises
    NotFound."""
    proposal = load_own_proposal(request, proposal_id)
    body = representation.build_proposal_json(proposal)
    return build_proposal_response(body, wait=wait)


def load_own_proposal(request: HttpRequest, proposal_id: str) -> Proposal:
    """Return the calling agent's proposal. Raises NotFound."""
    proposal = representation.find_proposal(
        get_calling_agent(request).slug, proposal_id
    )
    if proposal is None:
        raise NotFound
    return proposal


def mark_replayed(replayed: bool, response: HttpResponse) -> HttpResponse:
    """Add `Idempotent-Replayed: true` to the answer to an earlier call."""
    if replayed:
        response["Idempotent-Replayed"] = "true"
    return response
