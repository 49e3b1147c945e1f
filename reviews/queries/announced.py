"""What ran under NOTIFY: announced as it happened, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, OuterRef, Prefetch, Subquery
from django.urls import reverse

from policies.choices import Tier
from policies.models import Person
from reviews.choices import ExecutionStatus
from reviews.models import Proposal, Revision
from reviews.presenters.shapes import Part

from . import showing, states, visible
from .states import State

PAGE = 50
UNFINISHED = {ExecutionStatus.QUEUED, ExecutionStatus.CLAIMED}


@dataclass(frozen=True, slots=True)
class Announced:
    id: str
    at: datetime
    effect: tuple[Part, ...]
    risk: str
    tool: str
    agent: str
    thread_url: str
    state: State
    stop_url: str


def page(person: Person) -> list[Announced]:
    """The newest announced effects in this person's queues, in three queries."""
    current = Revision.objects.filter(number=F("proposal__revision"))
    tier = current.filter(proposal=OuterRef("pk")).values("tier")[:1]
    found = (
        visible.proposals(person)
        .annotate(now_tier=Subquery(tier))
        .filter(now_tier=Tier.NOTIFY, request__isnull=True)
        .prefetch_related(
            Prefetch("revisions", current.select_related("tool"), to_attr="now"),
            "executions",
        )
        .order_by("-created_at")
    )
    return [_line(proposal) for proposal in found[:PAGE]]


def _line(proposal: Proposal) -> Announced:
    revision = proposal.now[0]  # type: ignore[attr-defined]
    execution = next(iter(proposal.executions.all()), None)
    running = execution is not None and execution.status in UNFINISHED
    thread = reverse("agents:thread", args=[proposal.agent, proposal.thread])
    stop = reverse("agents:stop_thread", args=[proposal.agent, proposal.thread])
    return Announced(
        id=proposal.pk,
        at=proposal.created_at,
        effect=showing.effect(revision),
        risk=revision.risk,
        tool=proposal.tool_name,
        agent=proposal.agent,
        thread_url=thread,
        state=states.of_execution(execution),
        stop_url=stop if running else "",
    )
