"""Batch endpoints for people's programs: the same list, digest and checks as the page,
without its samples. The schemas describe them in OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Query, Router, Schema
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from journal import clock
from journal.errors import InvalidInput, build_field_error
from policies import money
from policies.models import Person
from reviews.batches import decide, similarity
from reviews.batches.decide import BatchSubmission
from reviews.batches.membership import BatchMember
from reviews.choices import Verdict
from reviews.desk.batches import lists, load, table
from reviews.desk.batches.load import LoadedBatch
from reviews.desk.components import cursors

from . import requests, schemas
from .people import PersonAuth, read_caller

MAX_ITEMS = 50

RequestId = Annotated[str, Field(max_length=40)]


class DecideBatchIn(BaseModel):
    """One verdict on an exact ordered list. `digest` is the SHA-256 of the RFC 8785
    bytes of the items' `entry` in this order; `GET` returns it for any selection."""

    model_config = ConfigDict(extra="forbid")

    digest: Annotated[str, Field(max_length=80)]
    items: Annotated[list[RequestId], Field(min_length=1, max_length=MAX_ITEMS)]
    # Members that were seen and left out. A member in neither list joined later.
    left_out: list[RequestId] = Field(default_factory=list, max_length=MAX_ITEMS)
    verdict: Literal["approve", "reject", "escalate"]
    reason_code: Annotated[str, Field(max_length=16)] = ""
    reason: Annotated[str, Field(max_length=4096)] = ""
    stop_at_failure: StrictBool = True  # only with `approve`


class EntryOut(Schema):
    request: str
    version: int
    action_hash: str
    seal: str
    reading: str


class BatchMemberOut(Schema):
    entry: EntryOut
    position: int
    args: dict[str, Any]
    amount: str | None
    status: str
    expires_at: str
    why_not: str
    execution: str | None


class BatchDetailOut(Schema):
    id: str
    status: str
    tool: str
    agent: str
    queue: str
    group: str
    formed_at: str
    closes_at: str
    settled_at: str | None
    digest: str
    total: str | None
    currency: str | None
    stop_at_failure: bool
    halted: bool
    can_decide: bool
    why_not: str
    items: list[BatchMemberOut]


class BatchLineOut(Schema):
    id: str
    flags: list[str] = Field(description="Warnings of any of its requests' pages.")
    tool: str
    agent: str
    risk: str
    status: str
    expires_at: str | None


class BatchesOut(Schema):
    items: list[BatchLineOut]
    next_cursor: str | None


PAGE = 50
router = Router(auth=PersonAuth(), tags=["people"], by_alias=True)
router.add_decorator(schemas.reject_unknown_parameters, mode="operation")


@router.get("/batches", response=BatchesOut)
def list_batches(
    request: HttpRequest,
    limit: Annotated[int, Query(PAGE, ge=1, le=PAGE)] = PAGE,
    cursor: str = "",
) -> HttpResponse:
    """List the pending batches in this person's queues, in the order in which they
    formed, then those decided within the last week, newest first."""
    lines, more = lists.list_batches_after(
        read_caller(request), cursors.parse_cursor(cursor), size=limit, now=clock.now()
    )
    return JsonResponse(
        {"items": [_build_line(line) for line in lines], "next_cursor": more}
    )


@router.get("/batches/{batch_id}", response=BatchDetailOut)
def get_batch(
    request: HttpRequest,
    batch_id: str,
    leave_out: Annotated[list[str], Query([])],
) -> HttpResponse:
    """Return one batch with its members in order, and the digest of the list without
    the members in `leave_out`."""
    loaded = _load_batch(read_caller(request), batch_id)
    return JsonResponse(_build_detail(loaded, frozenset(leave_out)))


@router.post("/batches/{batch_id}/decide", response=BatchDetailOut)
def decide_batch(
    request: HttpRequest, batch_id: str, body: DecideBatchIn
) -> HttpResponse:
    """Record one verdict on every item of the list. If one item is refused, none is
    recorded."""
    person = read_caller(request)
    _load_batch(person, batch_id)
    if (
        "stop_at_failure" in body.model_fields_set
        and body.verdict != Verdict.APPROVE.value
    ):
        rule = "only an approval runs something; leave it out"
        raise InvalidInput(errors=[build_field_error("stop_at_failure", rule)])
    decide.decide_batch(
        BatchSubmission(
            batch_id=batch_id,
            person=person,
            verdict=Verdict(body.verdict),
            digest=body.digest,
            items=body.items,
            left_out=body.left_out,
            reason_code=body.reason_code,
            reason=body.reason,
            stop_at_failure=body.stop_at_failure,
        )
    )
    return JsonResponse(_build_detail(_load_batch(person, batch_id), frozenset()))


def _load_batch(person: Person, batch_id: str) -> LoadedBatch:
    return load.load_batch(person, batch_id, clock.now())


def _build_line(line: lists.BatchListItem) -> dict[str, Any]:
    return {
        "id": line.id,
        "flags": list(line.warnings),
        "tool": line.tool,
        "agent": line.agent,
        "risk": line.risk,
        "status": "decided" if line.decided else "open",
        "expires_at": line.clock.at.isoformat() if line.clock else None,
    }


def _build_detail(loaded: LoadedBatch, left_out: frozenset[str]) -> dict[str, Any]:
    batch = loaded.batch
    chosen = [member for member in loaded.members if member.id not in left_out]
    total = similarity.compute_total(member.version for member in chosen)
    digest = batch.digest or similarity.compute_list_digest(
        member.entry for member in chosen
    )
    return {
        "id": batch.pk,
        "status": batch.status,
        "tool": batch.tool.name,
        "agent": batch.agent,
        "queue": batch.queue.name,
        "group": batch.group,
        "formed_at": batch.formed_at.isoformat(),
        "closes_at": batch.closes_at.isoformat(),
        "settled_at": batch.settled_at.isoformat() if batch.settled_at else None,
        "digest": digest,
        "total": money.format_amount(total) if total else None,
        "currency": total.currency if total else None,
        "stop_at_failure": batch.stop_at_failure,
        "halted": batch.halted_at is not None,
        "can_decide": not loaded.why_not,
        "why_not": loaded.why_not,
        "items": [_build_member(loaded, member) for member in loaded.members],
    }


def _build_member(loaded: LoadedBatch, member: BatchMember) -> dict[str, Any]:
    amount = table.find_amount(member)
    execution = loaded.executions.get(member.request.proposal_id)
    return {
        "entry": member.entry,
        "position": member.item.position,
        "args": requests.hide_sensitive(member.version.revision),
        "amount": money.format_amount(amount) if amount else None,
        "status": member.request.status,
        "expires_at": member.request.expires_at.isoformat(),
        "why_not": loaded.blocked(member) if loaded.waits else "",
        "execution": execution.status if execution else None,
    }
