"""The list of what ran under NOTIFY, newest first."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, F, OuterRef, QuerySet

from journal import clock
from policies.models import Person
from reviews import permissions
from reviews.choices import IN_FLIGHT, ExecutionStatus
from reviews.effects import describe
from reviews.models import Execution, Sighting
from reviews.presenters.shapes import SentencePart
from reviews.roles import Permission

from ..components import states
from ..components.states import StateLabel
from ..components.undo import ExecutedEffect, UndoStatus, build_undo_statuses

PAGE_SIZE = 50
DONE = ExecutionStatus.SUCCEEDED


@dataclass(frozen=True, slots=True)
class AnnouncedEffect:
    """One effect: its execution as `build_announced_page` annotates it. `undo` is the
    tool's declared way to undo it; nobody is asked to do so here."""

    execution: Any
    effect: tuple[SentencePart, ...]
    undo: str
    state: StateLabel
    running: bool
    reversal: UndoStatus


@dataclass(frozen=True, slots=True)
class AnnouncedPage:
    """The page of announced effects."""

    lines: list[AnnouncedEffect]
    marks: bool  # whether this person can mark effects as seen

    @property
    def unseen(self) -> list[str]:
        """The ids of the effects that this person has not marked as seen."""
        return [line.execution.pk for line in self.lines if not line.execution.seen]


def select_announced(person: Person) -> QuerySet[Execution]:
    """Select what was announced in this person's queues, or everything for people who
    see all."""
    if permissions.has_permission(person, Permission.SEE_ALL):
        return Execution.objects.filter(announced_in__isnull=False)
    return Execution.objects.filter(announced_in__in=permissions.queues_of(person))


def list_announced_to(person: Person, ids: Collection[str]) -> list[Execution]:
    """List those of `ids` that were announced to this person."""
    if permissions.find_deciding_role(person) is None:
        return []
    announced = select_announced(person).filter(pk__in=list(ids)[:PAGE_SIZE])
    return list(announced.select_related("proposal"))


def build_announced_page(person: Person) -> AnnouncedPage:
    """Build the page of the newest effects, in two queries and one more for effects not
    described before."""
    seen = Sighting.objects.filter(execution=OuterRef("pk"))
    announced = (
        select_announced(person)
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
    rows: list[Any] = list(announced[:PAGE_SIZE])
    briefs = describe.load_briefs_by_id({row.revision: row.hash for row in rows})
    done = {row.pk: _build_effect_source(row) for row in rows if row.status == DONE}
    reversed_ = build_undo_statuses(person, done, clock.now()) if done else {}
    return AnnouncedPage(
        lines=[
            _build_line(row, briefs[row.revision], reversed_.get(row.pk, UndoStatus()))
            for row in rows
        ],
        marks=permissions.find_deciding_role(person) is not None,
    )


def _build_effect_source(row: Any) -> ExecutedEffect:
    proposal = row.proposal
    return ExecutedEffect(row.of_tool, proposal.agent, proposal.thread)


def _build_line(
    row: Any, shown: describe.EffectBrief, reversal: UndoStatus
) -> AnnouncedEffect:
    return AnnouncedEffect(
        execution=row,
        effect=shown.effect,
        undo=shown.undo,
        state=states.build_execution_state(row),
        running=row.status in IN_FLIGHT,
        reversal=reversal,
    )
