"""Whether an effect can be undone, is being undone or was: for pages that show the
effect, and for the proposal that undoes it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from policies import tools
from policies.models import Person, Tool
from reviews import permissions
from reviews.choices import REVERSAL, ExecutionStatus, RequestStatus, StopMode
from reviews.effects import describe
from reviews.executions import reversals
from reviews.models import Execution, Proposal, Reversal
from reviews.presenters.shapes import Part
from reviews.stops import stops

# By tool id: its queue, and the tool that undoes it. Tool rows are immutable.
_tools: dict[int, tuple[int, str]] = {}


@dataclass(frozen=True, slots=True)
class Effect:
    """An executed effect: the key of its tool's row, and its run."""

    tool: int | None
    agent: str
    thread: str


@dataclass(frozen=True, slots=True)
class Undo:
    """Undoing one effect: its state in words, and where this person may propose it.

    `stopped`: it can be proposed once what is stopped is switched on again.
    """

    word: str = ""
    url: str = ""  # of the proposal that undoes it
    offer: str = ""  # where this person may propose it; empty if not
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Reverses:
    """The effect that one proposal undoes."""

    effect: tuple[Part, ...]
    url: str
    by: str
    at: datetime


def undos(
    person: Person, effects: Mapping[str, Effect], now: datetime
) -> dict[str, Undo]:
    """By execution id, for executions that succeeded.

    Two queries, and where something may be proposed one each for tools that are not
    cached and for stops.
    """
    declared = _declared({one.tool for one in effects.values() if one.tool})
    able = {x: one for x, one in effects.items() if one.tool and declared[one.tool][1]}
    newest = _newest(able)
    actions = {
        pk: (one.agent, one.thread, declared[one.tool][1])
        for pk, one in able.items()
        if one.tool and _may(person, declared[one.tool][0], newest.get(pk), now)
    }
    off = stops.in_force_over(set(actions.values())) if actions else {}
    halted = {pk for pk, one in actions.items() if off[one] is StopMode.STOPPED}
    return {
        pk: _undo(pk, newest.get(pk), may=pk in actions, stopped=pk in halted)
        for pk in able
    }


def _declared(wanted: Collection[int]) -> Mapping[int, tuple[int, str]]:
    missing = [pk for pk in wanted if pk not in _tools]
    for tool in Tool.objects.filter(pk__in=missing) if missing else ():
        undoes = tools.definition(tool).compensation
        _tools[tool.pk] = tool.queue_id, undoes.tool if undoes else ""
    return _tools


def _newest(effects: Collection[str]) -> Mapping[str, Reversal]:
    if not effects:
        return {}
    rows = Reversal.objects.filter(execution__in=effects).order_by("at")
    found = rows.select_related("proposal__request")
    executions = found.prefetch_related("proposal__executions__grant")
    return {row.execution_id: row for row in executions}


def _may(person: Person, queue: int, row: Reversal | None, now: datetime) -> bool:
    """Whether this person may propose a reversal, apart from stops."""
    if permissions.deciding_role(person) is None:
        return False
    if queue not in permissions.queues_of(person):
        return False
    over = row is None or row.over_at is not None
    return over or (row is not None and reversals.is_dead(row.proposal, now))


def _undo(pk: str, row: Reversal | None, *, may: bool, stopped: bool) -> Undo:
    offered = may and not stopped
    return Undo(
        word=_word(row.proposal) if row else "",
        url=_address(row.proposal) if row else "",
        offer=reverse("agents:reversal", args=[pk]) if offered else "",
        stopped=stopped,
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
    """The effect that this proposal undoes; no query unless a person made it for
    that."""
    return reversed_by([proposal]).get(proposal.pk)


def reversed_by(proposals: Iterable[Proposal]) -> dict[str, Reverses]:
    """The effects that these proposals undo, by proposal id; two queries if there are
    any."""
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
        effect=describe.effect(row.execution.grant.revision),
        url=_address(row.execution.proposal),
        by=str(who) if who else "Someone",
        at=row.at,
    )


def of_execution(
    person: Person,
    execution: Execution | None,
    proposal: Proposal,
    tool: int | None,
    now: datetime,
) -> Undo:
    """The undo status of one execution of this proposal, of whatever status."""
    if execution is None or execution.status != ExecutionStatus.SUCCEEDED:
        return Undo()
    effect = Effect(tool, proposal.agent, proposal.thread)
    return undos(person, {execution.pk: effect}, now).get(execution.pk, Undo())
