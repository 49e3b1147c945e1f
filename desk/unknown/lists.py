"""The list of unknown outcomes: those still open, and those settled lately."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from journal import cursors
from policies.models import Person
from reviews import permissions
from reviews.choices import SETTLED_BY_LOOK_UP, SETTLED_BY_PERSON, ExecutionStatus
from reviews.effects import describe
from reviews.effects.wording import WordingPart, build_wording
from reviews.models import Execution, LookUp
from reviews.presenters.shapes import SentencePart
from reviews.roles import Permission

from ..components import visibility

MAX_SETTLED = 20  # settled outcomes on the page
LOOK_UP_WORDS = {
    "succeeded": "it happened",
    "failed": "it did not happen",
    "not_found": "no record of Counterseal's reference",
    "unknown": "no clear answer",
}


@dataclass(frozen=True, slots=True)
class UnknownOutcomeLine:
    """One execution whose outcome is or was unknown. `looked` says what look-ups found,
    or why there are none."""

    execution: Execution
    effect: tuple[SentencePart, ...]
    risk: str
    since: datetime | None
    detail: str
    looked: str
    settleable: bool  # whether this person may settle it
    outcome: tuple[WordingPart, ...] = ()  # empty while it is unknown


@dataclass(frozen=True, slots=True)
class UnknownOutcomesPage:
    """The page: open outcomes and settled ones."""

    lines: list[UnknownOutcomeLine]
    settled: list[UnknownOutcomeLine]
    more: int  # settled ones that are not listed


def select_readable(person: Person) -> QuerySet[Execution]:
    """Select the executions that this person may see and that were ever unknown."""
    visible = _select_visible(person)
    return visible.filter(status=ExecutionStatus.UNKNOWN) | visible.filter(
        unknown_at__isnull=False
    )


def _select_visible(person: Person) -> QuerySet[Execution]:
    visible = visibility.select_visible_proposals(person).values("pk")
    return Execution.objects.filter(proposal__in=visible).select_related(
        "grant__revision__tool", "grant__proposal", "proposal"
    )


def select_settleable(person: Person) -> QuerySet[Execution]:
    """Select the unknown executions of this person's queues; none for a person who may
    not settle."""
    able = permissions.has_permission(person, Permission.SETTLE_UNKNOWN)
    if not able or permissions.find_deciding_role(person) is None:
        return Execution.objects.none()
    if permissions.is_reviewer_stopped(person):
        return Execution.objects.none()
    return Execution.objects.filter(
        status=ExecutionStatus.UNKNOWN,
        grant__revision__tool__queue__in=permissions.queues_of(person),
    ).exclude(
        Q(proposal__barred__contains=[person.public_id])
        | Q(proposal__kept_out__contains=[person.public_id])
    )


def build_unknown_page(person: Person) -> UnknownOutcomesPage:
    """Build the page: open outcomes, oldest first, then settled ones, newest first.
    Four queries."""
    readable = select_readable(person)
    open_ = list(readable.filter(status=ExecutionStatus.UNKNOWN).order_by("queued_at"))
    known = _select_visible(person).filter(unknown_at__isnull=False)
    known = known.exclude(status=ExecutionStatus.UNKNOWN)
    over = list(known.order_by("-finished_at")[:MAX_SETTLED])
    settleable = set(select_settleable(person).values_list("pk", flat=True))
    newest = _list_newest_look_ups(open_)
    return UnknownOutcomesPage(
        lines=[
            build_unknown_line(execution, newest, execution.pk in settleable)
            for execution in open_
        ],
        settled=[build_unknown_line(execution, {}) for execution in over],
        more=cursors.count_rest(known, over, MAX_SETTLED),
    )


def _list_newest_look_ups(rows: list[Execution]) -> Mapping[str, LookUp]:
    look_ups = LookUp.objects.filter(execution__in=rows).order_by("number")
    return {look_up.execution_id: look_up for look_up in look_ups}


def build_unknown_line(
    execution: Execution,
    newest: Mapping[str, LookUp],
    settleable: bool = False,
    *,
    settler: WordingPart | None = None,
) -> UnknownOutcomeLine:
    """Build the line of one execution. `newest` maps executions to their newest
    look-up; `settler` is the person who recorded the result, if their name is known."""
    revision = execution.grant.revision
    return UnknownOutcomeLine(
        execution=execution,
        effect=describe.build_effect_sentence(revision),
        risk=revision.risk,
        since=execution.unknown_at or execution.claimed_at,
        detail=execution.detail or _find_attempt_code(execution),
        looked=_describe_look_ups(execution, newest.get(execution.pk)),
        settleable=settleable,
        outcome=describe_outcome(execution, settler),
    )


def _find_attempt_code(execution: Execution) -> str:
    """The code of the attempt itself; empty for our own code for who settled it."""
    ours = execution.code in {SETTLED_BY_PERSON, SETTLED_BY_LOOK_UP, "repaired"}
    return "" if ours else execution.code


def _describe_look_ups(execution: Execution, newest: LookUp | None) -> str:
    if not execution.has_look_up:
        return "Cannot be looked up"
    if newest is None:
        return "Not looked up yet"
    return f"Looked up {_format_times(newest.number)}: {LOOK_UP_WORDS[newest.said]}"


def _format_times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def describe_outcome(
    execution: Execution, settler: WordingPart | None = None
) -> tuple[WordingPart, ...]:
    """Describe the outcome and who reported it, a person by name if `settler` is known;
    empty while it is unknown."""
    if execution.status == ExecutionStatus.UNKNOWN:
        return ()
    by_person = execution.code == SETTLED_BY_PERSON
    source = "as recorded by {who}" if by_person else "as reported by its service"
    who = settler or WordingPart("a person")
    if execution.status == ExecutionStatus.SUCCEEDED:
        return build_wording(f"It happened, {source}.", who=who)
    if execution.status == ExecutionStatus.FAILED:
        return build_wording(f"It did not happen, {source}.", who=who)
    return build_wording("It did not happen and was queued again.")
