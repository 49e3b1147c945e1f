"""Batch endpoints for people's programs: the same list, digest and checks as the page,
without its samples. The schemas describe them in OpenAPI."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from django.http import HttpRequest, HttpResponse, JsonResponse
from ninja import Query, Router, Schema
from pydantic import BaseModel, ConfigDict, Field, StrictBool

from journal import clock, cursors
from journal.errors import InvalidInput, build_field_error
from policies import money
from policies.models import Person
from reviews.batches import decide, similarity
from reviews.batches.decide import BatchSubmission
from reviews.batches.membership import BatchMember
from reviews.choices import Verdict
from reviews.effects import describe
from reviews.presenters.common import Subject

from ..batches import columns, lists, load, table
from ..batches.load import LoadedBatch
from ..batches.page import BatchPage, build_page
from ..batches.selection import sum_line_costs
from . import requests, schemas
from .people import PersonAuth, read_caller
from .schemas import Timestamp

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


class FactOut(Schema):
    """A fact of the tool's reader that the policy puts on the page."""

    name: str
    label: str
    value: str


class EvidenceSummaryOut(Schema):
    """Where one item of evidence is from. Its text is on the request itself."""

    kind: str
    source: str
    at: str
    digest: str


class BatchMemberOut(Schema):
    entry: EntryOut
    position: int
    title: str = Field(description="The effect as one sentence.")
    flags: list[str] = Field(description="Warnings, as on a row of the queue.")
    tags: list[schemas.TagOut]
    stands_out: list[str] = Field(
        description="Why this item differs from the others, as the page says it."
    )
    facts: list[FactOut] = Field(
        description="For whom it is, where it goes and what it costs, by the reader."
    )
    rationale: str = Field(description="The agent's words, not checked, redacted.")
    evidence: list[EvidenceSummaryOut]
    args: dict[str, Any]
    amount: str | None
    status: str
    expires_at: Timestamp
    why_not: str
    execution: str | None


class CostOut(Schema):
    """What all items together cost beside the amounts that they move."""

    label: str
    total: str
    known: int = Field(description="For how many items it is known.")


class BatchDetailOut(Schema):
    id: str
    title: str = Field(description="What all items together do, as one sentence.")
    risk: str
    rules: list[str]
    costs: list[CostOut] = Field(
        description="Sums over the items that are not in `leave_out`."
    )
    status: str
    tool: str
    agent: str
    queue: str
    group: str
    formed_at: Timestamp
    closes_at: Timestamp
    settled_at: Timestamp | None
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
    expires_at: Timestamp | None


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
    """Return one batch with its members in order, and the digest and the sums of the
    list without the members in `leave_out`."""
    loaded = _load_batch(read_caller(request), batch_id)
    _check_left_out(loaded, leave_out)
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


def _check_left_out(loaded: LoadedBatch, left_out: list[str]) -> None:
    """Raise InvalidInput for an id that is no member: the digest would be of a longer
    list than the caller thinks."""
    there = {member.id for member in loaded.members}
    errors = [
        build_field_error(f"leave_out[{at}]", "this is not an item of the batch")
        for at, pk in enumerate(left_out[:MAX_ITEMS])
        if pk not in there
    ]
    if errors:
        raise InvalidInput(errors=errors)


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
        "expires_at": clock.format_instant(line.clock.at) if line.clock else None,
    }


def _build_detail(loaded: LoadedBatch, left_out: frozenset[str]) -> dict[str, Any]:
    batch, page = loaded.batch, build_page(loaded)
    chosen = [member for member in loaded.members if member.id not in left_out]
    total = similarity.compute_total(member.version for member in chosen)
    digest = batch.digest or similarity.compute_list_digest(
        member.entry for member in chosen
    )
    return {
        "id": batch.pk,
        **_build_sums(page, left_out),
        "status": batch.status,
        "tool": batch.tool.name,
        "agent": batch.agent,
        "queue": batch.queue.name,
        "group": batch.group,
        "formed_at": clock.format_instant(batch.formed_at),
        "closes_at": clock.format_instant(batch.closes_at),
        "settled_at": clock.format_instant(batch.settled_at)
        if batch.settled_at
        else None,
        "digest": digest,
        "total": money.format_amount(total) if total else None,
        "currency": total.currency if total else None,
        "stop_at_failure": batch.stop_at_failure,
        "halted": batch.halted_at is not None,
        "can_decide": not loaded.why_not,
        "why_not": loaded.why_not,
        "items": [_build_member(page, member) for member in loaded.members],
    }


def _build_sums(page: BatchPage, left_out: frozenset[str]) -> dict[str, Any]:
    if not page.lines:  # a batch that was dissolved
        return {
            "title": page.loaded.definition.title,
            "risk": "",
            "rules": [],
            "costs": [],
        }
    lines = [line for line in page.lines if line.id not in left_out]
    costs = sum_line_costs(page.loaded.definition, lines)
    return {
        "title": describe.format_sentence(page.title),
        "risk": page.facts.version.risk,
        "rules": page.facts.rules,
        "costs": [
            {"label": cost.label, "total": cost.said, "known": cost.known}
            for cost in costs
        ],
    }


def _list_facts(member: BatchMember, subject: Subject) -> list[dict[str, str]]:
    review = member.definition.review
    names = dict.fromkeys([*review.columns, *review.facts])
    cells = {name: columns.build_fact_cell(subject, name) for name in names}
    return [
        {"name": name, "label": subject.label(name), "value": cell.text}
        for name, cell in cells.items()
        if cell != columns.NOT_GIVEN
    ]


def _build_member(page: BatchPage, member: BatchMember) -> dict[str, Any]:
    loaded, revision = page.loaded, member.version.revision
    line = next(line for line in page.lines if line.id == member.id)
    brief = describe.load_brief(revision)
    reasons = {entry.id: entry.reasons for entry in page.table.entries}
    amount = table.find_amount(member)
    execution = loaded.executions.get(member.request.proposal_id)
    return {
        "entry": member.entry,
        "position": member.item.position,
        "title": describe.format_sentence(brief.effect),
        "flags": brief.flags,
        "tags": [{"text": tag.text, "loud": tag.loud} for tag in line.tags],
        "stands_out": list(reasons.get(member.id, ())),
        "facts": _list_facts(member, line.subject),
        "rationale": revision.rationale,
        "evidence": [
            {
                "kind": item.kind,
                "source": item.source,
                "at": item.at,
                "digest": item.digest,
            }
            for item in describe.list_evidence(revision)
        ],
        "args": requests.hide_sensitive(member.version.revision),
        "amount": money.format_amount(amount) if amount else None,
        "status": member.request.status,
        "expires_at": clock.format_instant(member.request.expires_at),
        "why_not": loaded.blocked(member) if loaded.waits else "",
        "execution": execution.status if execution else None,
    }
