"""The list of what ran under NOTIFY, newest first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet
from django.urls import reverse

from journal import clock
from policies.models import Person
from reviews import permissions
from reviews.choices import ExecutionStatus
from reviews.desk.components import states
from reviews.desk.components import undo as undoing
from reviews.desk.components.states import State
from reviews.desk.components.undo import Undo
from reviews.effects import describe
from reviews.models import Execution, Sighting
from reviews.permissions import Permission
from reviews.presenters.shapes import Part

PAGE = 50
DONE = ExecutionStatus.SUCCEEDED
UNFINISHED = {ExecutionStatus.QUEUED, ExecutionStatus.CLAIMED}


@dataclass(frozen=True, slots=True)
class Announced:
    """One effect. `undo` is the tool's declared way to undo it; nobody is asked to do
    so here."""

    id: str
    at: datetime
    effect: tuple[Part, ...]
    undo: str
    risk: str
    tool: str
    agent: str
    thread_url: str
    state: State
    stop_url: str
    seen: bool
    near_miss: bool
    reversal: Undo


@dataclass(frozen=True, slots=True)
class AnnouncedPage:
    """The page of announced effects."""

    lines: list[Announced]
    marks: bool  # whether this person can mark effects as seen

    @property
    def unseen(self) -> list[str]:
        """The ids of the effects that this person has not marked as seen."""
        return [line.id for line in self.lines if not line.seen]


def readable(person: Person) -> QuerySet[Execution]:
    """Select what was announced in this person's queues, or everything for people who
    see all."""
    if permissions.allowed(person, Permission.SEE_ALL):
        return Execution.objects.filter(announced_in__isnull=False)
    return Execution.objects.filter(announced_in__in=permissions.queues_of(person))


def told(person: Person, ids: Collection[str]) -> list[Execution]:
    """List those of `ids` that were announced to this person."""
    if permissions.deciding_role(person) is None:
        return []
    found = readable(person).filter(pk__in=list(ids)[:PAGE])
    return list(found.select_related("proposal"))


def page(person: Person) -> AnnouncedPage:
    """Build the page of the newest effects, in two queries and one more for effects not
    described before."""
    seen = Sighting.objects.filter(execution=OuterRef("pk"))
    found = (
        readable(person)
        .select_related("proposal")
        .annotate(
            revision=F("grant__revision"),
            hash=F("grant__action_hash"),
            risk=F("grant__revision__risk"),
            of_tool=F("grant__revision__tool"),
            seen=Exists(seen.filter(person=person)),
            near_miss=Exists(seen.filter(near_miss=True)),
        )
        .order_by("-queued_at")
    )
    rows: list[Any] = list(found[:PAGE])
    briefs = describe.briefs({row.revision: row.hash for row in rows})
    done = {one.pk: _effect(one) for one in rows if one.status == DONE}
    reversed_ = undoing.undos(person, done, clock.now()) if done else {}
    return AnnouncedPage(
        lines=[
            _line(row, briefs[row.revision], reversed_.get(row.pk, Undo()))
            for row in rows
        ],
        marks=permissions.deciding_role(person) is not None,
    )


def _effect(row: Any) -> undoing.Effect:
    proposal = row.proposal
    return undoing.Effect(row.of_tool, proposal.agent, proposal.thread)


def _line(row: Any, shown: describe.Brief, reversal: Undo) -> Announced:
    """Build a line from an execution as `build_announced_page` annotates it."""
    proposal = row.proposal
    run = [proposal.agent, proposal.thread]
    running = row.status in UNFINISHED
    return Announced(
        id=row.pk,
        at=row.queued_at,
        effect=shown.effect,
        undo=shown.undo,
        risk=row.risk,
        tool=proposal.tool_name,
        agent=proposal.agent,
        thread_url=reverse("agents:thread", args=run),
        state=states.of_execution(row),
        stop_url=reverse("agents:stop_thread", args=run) if running else "",
        seen=row.seen,
        near_miss=row.near_miss,
        reversal=reversal,
    )
