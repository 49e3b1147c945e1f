"""Effects whose outcome nobody could know: what a person has to settle."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.urls import reverse

from policies.models import Person
from reviews import permissions
from reviews.choices import ExecutionStatus
from reviews.models import Execution
from reviews.permissions import Permission
from reviews.presenters.shapes import Part

from . import showing


@dataclass(frozen=True, slots=True)
class Unknown:
    id: str
    effect: tuple[Part, ...]
    risk: str
    tool: str
    agent: str
    thread: str
    thread_url: str
    attempts: int
    claimed_at: datetime | None
    key: str
    detail: str
    reference: str


def settleable(person: Person) -> QuerySet[Execution]:
    """Unknown executions of this person's queues, for who may settle them."""
    if not permissions.allowed(person, Permission.SETTLE_UNKNOWN):
        return Execution.objects.none()
    return Execution.objects.filter(
        status=ExecutionStatus.UNKNOWN,
        grant__revision__tool__queue__in=permissions.queues_of(person),
    ).select_related("grant__revision__tool", "proposal")


def page(person: Person) -> list[Unknown]:
    """Oldest first, in one query."""
    return [_line(one) for one in settleable(person).order_by("queued_at")]


def _line(execution: Execution) -> Unknown:
    proposal, revision = execution.proposal, execution.grant.revision
    return Unknown(
        id=execution.pk,
        effect=showing.effect(revision),
        risk=revision.risk,
        tool=proposal.tool_name,
        agent=proposal.agent,
        thread=proposal.thread,
        thread_url=reverse("agents:thread", args=[proposal.agent, proposal.thread]),
        attempts=execution.attempts,
        claimed_at=execution.claimed_at,
        key=execution.idempotency_key,
        detail=": ".join(part for part in (execution.code, execution.detail) if part),
        reference=execution.pk,
    )
