"""That an effect can be undone, is to be, or was: for the pages that show it, and for
the page of the proposal that undoes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from policies import tools
from policies.models import Person, Tool
from reviews import permissions, reversals
from reviews.choices import REVERSAL, ExecutionStatus, RequestStatus
from reviews.models import Execution, Proposal, Reversal
from reviews.presenters.shapes import Part

from . import showing

# Tool rows never change: queue and whether one declares what undoes it, by id.
_tools: dict[int, tuple[int, bool]] = {}


@dataclass(frozen=True, slots=True)
class Undo:
    """Of one effect: what became of undoing it, and where to propose it."""

    word: str = ""
    url: str = ""  # of the proposal that undoes it
    offer: str = ""  # where this person may propose it


@dataclass(frozen=True, slots=True)
class Reverses:
    """Of one proposal: the effect that it undoes."""

    effect: tuple[Part, ...]
    url: str
    by: str
    at: datetime


def undos(
    person: Person, effects: Mapping[str, int | None], now: datetime
) -> dict[str, Undo]:
    """For executions that succeeded, by id, with their tool rows' ids; in two queries,
    and one more for tools that this process never saw."""
    declared = _declared({tool for tool in effects.values() if tool})
    able = {x: tool for x, tool in effects.items() if tool and declared[tool][1]}
    newest = _newest(able)
    return {
        pk: _undo(person, pk, declared[tool][0], newest.get(pk), now)
        for pk, tool in able.items()
    }


def _declared(wanted: Collection[int]) -> Mapping[int, tuple[int, bool]]:
    missing = [pk for pk in wanted if pk not in _tools]
    for tool in Tool.objects.filter(pk__in=missing) if missing else ():
        undoes = tools.definition(tool).compensation is not None
        _tools[tool.pk] = tool.queue_id, undoes
    return _tools


def _newest(effects: Collection[str]) -> Mapping[str, Reversal]:
    if not effects:
        return {}
    rows = Reversal.objects.filter(execution__in=effects).order_by("at")
    found = rows.select_related("proposal__request")
    executions = found.prefetch_related("proposal__executions__grant")
    return {row.execution_id: row for row in executions}


def _undo(
    person: Person, pk: str, queue: int, row: Reversal | None, now: datetime
) -> Undo:
    over = row is None or row.over_at is not None
    over = over or (row is not None and reversals.is_dead(row.proposal, now))
    may = permissions.deciding_role(person) and queue in permissions.queues_of(person)
    return Undo(
        word=_word(row.proposal) if row else "",
        url=_address(row.proposal) if row else "",
        offer=reverse("agents:reversal", args=[pk]) if over and may else "",
    )


def _address(proposal: Proposal) -> str:
    request = getattr(proposal, "request", None)
    if request is not None:
        return reverse("reviews:request_detail", args=[request.pk])
    return reverse("agents:thread", args=[proposal.agent, proposal.thread])


def _word(proposal: Proposal) -> str:
    if proposal.blocked_by:
        return "Reversal blocked"
    execution = reversals.newest(proposal)
    if execution is not None:
        return {
            ExecutionStatus.QUEUED: "Reversal approved",
            ExecutionStatus.CLAIMED: "Reversal runs",
            ExecutionStatus.SUCCEEDED: "Reversal executed",
            ExecutionStatus.FAILED: "Reversal failed",
            ExecutionStatus.UNKNOWN: "Reversal: outcome unknown",
            ExecutionStatus.REFUSED: "Reversal refused",
        }[ExecutionStatus(execution.status)]
    request = getattr(proposal, "request", None)
    if request is None or request.status in {"pending", "recallable"}:
        return "Reversal proposed"
    return f"Reversal {RequestStatus(request.status).value}"


def reverses(proposal: Proposal) -> Reverses | None:
    """What this proposal undoes; without a query for any that a person did not make."""
    return reversed_by([proposal]).get(proposal.pk)


def reversed_by(proposals: Iterable[Proposal]) -> dict[str, Reverses]:
    """The same for many, by proposal, in two queries where there is one at all."""
    made = [one.pk for one in proposals if one.source == REVERSAL]
    if not made:
        return {}
    revision = "execution__grant__revision"
    rows = Reversal.objects.filter(proposal__in=made).select_related(
        "execution__proposal__request", f"{revision}__tool", f"{revision}__proposal"
    )
    people = Person.objects.in_bulk({row.by for row in rows}, field_name="public_id")
    return {row.proposal_id: _reverses(row, people.get(row.by)) for row in rows}


def _reverses(row: Reversal, who: Person | None) -> Reverses:
    return Reverses(
        effect=showing.effect(row.execution.grant.revision),
        url=_address(row.execution.proposal),
        by=str(who) if who else "Someone",
        at=row.at,
    )


def of_execution(
    person: Person, execution: Execution | None, tool: int | None, now: datetime
) -> Undo:
    """The same for one, of whatever status."""
    if execution is None or execution.status != ExecutionStatus.SUCCEEDED:
        return Undo()
    return undos(person, {execution.pk: tool}, now).get(execution.pk, Undo())
