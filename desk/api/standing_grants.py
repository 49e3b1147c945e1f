"""Endpoints for standing grants: issue one from a request, list them, and revoke one,
with the checks of the pages."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Query, Router, Schema
from pydantic import BaseModel, ConfigDict, Field

from journal import clock, cursors
from journal.errors import Conflict
from policies.models import StandingGrant
from reviews import canary_verdicts
from reviews.standing_grants import issuance

from ..standing_grants import page as queries
from . import schemas
from .people import PersonAuth, load_visible_request, read_caller
from .schemas import Timestamp

PAGE = 50


class StandingGrantIn(BaseModel):
    """Allow the calls of the request's tool in its run in advance, within the terms of
    the policy. The request itself stays open."""

    model_config = ConfigDict(extra="forbid")

    reason: Annotated[str, Field(min_length=1, max_length=4096)]


class StandingGrantOut(Schema):
    """A standing grant. `in_force` is false once it is revoked, has expired, or all its
    uses are taken."""

    id: str
    tool: str
    agent: str
    thread: str
    request: str
    issued_by: str = Field(description="Who issued it.")
    reason: str
    issued_at: Timestamp
    expires_at: Timestamp
    revoked_at: Timestamp | None
    uses: int
    budget: int = Field(description="The most uses it allows.")
    in_force: bool
    can_revoke: bool = Field(description="Whether this person may revoke it now.")


class StandingGrantsOut(Schema):
    items: list[StandingGrantOut]
    next_cursor: str | None


router = Router(auth=PersonAuth(), tags=["people"], by_alias=True)
router.add_decorator(schemas.reject_unknown_parameters, mode="operation")


@router.get("/standing-grants", response=StandingGrantsOut)
def list_standing_grants(
    request: HttpRequest,
    limit: Annotated[int, Query(PAGE, ge=1, le=PAGE)] = PAGE,
    cursor: str = "",
) -> HttpResponse:
    """List the standing grants of this person's queues, newest first; all of them for
    people who see everything."""
    rows = queries.select_visible_standing_grants(read_caller(request))
    place = cursors.parse_cursor(cursor)
    rows = cursors.select_after(rows, place, "issued_at", newest_first=True)
    page = list(rows.select_related("issued_by")[: limit + 1])
    now = clock.now()
    return JsonResponse(
        {
            "items": [_build_line(request, row, now) for row in page[:limit]],
            "next_cursor": cursors.build_next_cursor(page, limit, "issued_at"),
        }
    )


@router.post("/requests/{request_id}/standing-grant", response={201: StandingGrantOut})
def create_standing_grant(
    request: HttpRequest, request_id: str, body: StandingGrantIn
) -> HttpResponse:
    """Issue a standing grant from a pending request that this person may decide. 409
    says what does not allow one: the policy, the request, a stop, or a standing grant
    that is in force already."""
    person = read_caller(request)
    load_visible_request(person, request_id)
    if canary_verdicts.pass_on_canary(
        request_id=request_id, person=person, allows=True
    ):
        raise Conflict("This was a canary, and it has ended. Nothing was allowed.")
    row = issuance.issue_standing_grant(
        request_id=request_id, person=person, reason=body.reason
    )
    return JsonResponse(_build_line(request, row, clock.now()), status=201)


@router.post("/standing-grants/{grant_id}/revoke", response=StandingGrantOut)
def revoke_standing_grant(request: HttpRequest, grant_id: str) -> HttpResponse:
    """End a standing grant at once. An execution that took a use and has not begun is
    refused. 409 `conflict` when it was revoked before."""
    person = read_caller(request)
    grant = queries.find_standing_grant(person, grant_id)
    row = issuance.revoke_standing_grant(grant_id=grant.pk, person=person)
    return JsonResponse(_build_line(request, row, clock.now()))


def _build_line(
    request: HttpRequest, row: StandingGrant, now: datetime
) -> dict[str, Any]:
    in_force = not queries.describe_end(row, now)
    return {
        "id": row.pk,
        "tool": row.tool,
        "agent": row.agent,
        "thread": row.thread,
        "request": row.request,
        "issued_by": str(row.issued_by),
        "reason": row.reason,
        "issued_at": clock.format_instant(row.issued_at),
        "expires_at": clock.format_instant(row.expires_at),
        "revoked_at": clock.format_instant(row.revoked_at) if row.revoked_at else None,
        "uses": row.uses,
        "budget": row.budget,
        "in_force": in_force,
        "can_revoke": in_force and issuance.may_revoke(read_caller(request), row),
    }
