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
from reviews.choices import (
    EXECUTION_SPECS,
    OPEN,
    REVERSAL_SOURCE,
    ExecutionStatus,
    StopMode,
)
from reviews.effects import describe
from reviews.executions import reversals
from reviews.models import Execution, Proposal, Reversal
from reviews.presenters.shapes import SentencePart
from reviews.stops import stops

# By tool id: its queue, and the tool that undoes it. Tool rows are immutable.
_compensation_cache: dict[int, tuple[int, str]] = {}


@dataclass(frozen=True, slots=True)
class ExecutedEffect:
    """An executed effect: the key of its tool's row, and its run."""

    tool: int | None
    agent: str
    thread: str


@dataclass(frozen=True, slots=True)
class UndoStatus:
    """Undoing one effect: its state in words, and where this person may propose it.

    `stopped`: it can be proposed once what is stopped is switched on again.
    """

    word: str = ""
    url: str = ""  # of the proposal that undoes it
    offer: str = ""  # where this person may propose it; empty if not
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class ReversedEffect:
    effect: tuple[SentencePart, ...]
    url: str
    by: Person | str
    at: datetime


def build_undo_statuses(
    person: Person, effects: Mapping[str, ExecutedEffect], now: datetime
) -> dict[str, UndoStatus]:
    """By execution id, for executions that succeeded.

    Two queries, and where something may be proposed one each for tools that are not
    cached and for stops.
    """
    declared = _load_compensations(
        {effect.tool for effect in effects.values() if effect.tool}
    )
    able = {
        x: effect
        for x, effect in effects.items()
        if effect.tool and declared[effect.tool][1]
    }
    newest = _load_newest_reversals(able)
    actions = {
        pk: (effect.agent, effect.thread, declared[effect.tool][1])
        for pk, effect in able.items()
        if effect.tool
        and _may_propose(person, declared[effect.tool][0], newest.get(pk), now)
    }
    off = stops.load_stop_modes(set(actions.values())) if actions else {}
    halted = {pk for pk, action in actions.items() if off[action] is StopMode.STOPPED}
    return {
        pk: _build_undo_status(
            pk, newest.get(pk), may=pk in actions, stopped=pk in halted
        )
        for pk in able
    }


def _load_compensations(wanted: Collection[int]) -> Mapping[int, tuple[int, str]]:
    missing = [pk for pk in wanted if pk not in _compensation_cache]
    for tool in Tool.objects.filter(pk__in=missing) if missing else ():
        undoes = tools.load_definition(tool).compensation
        _compensation_cache[tool.pk] = tool.queue_id, undoes.tool if undoes else ""
    return _compensation_cache


def _load_newest_reversals(effects: Collection[str]) -> Mapping[str, Reversal]:
    if not effects:
        return {}
    rows = Reversal.objects.filter(execution__in=effects).order_by("at")
    rows = rows.select_related("proposal__request")
    rows = rows.prefetch_related("proposal__executions__grant")
    return {row.execution_id: row for row in rows}


def _may_propose(
    person: Person, queue: int, row: Reversal | None, now: datetime
) -> bool:
    """Whether this person may propose a reversal, apart from stops."""
    if permissions.find_deciding_role(person) is None:
        return False
    if queue not in permissions.queues_of(person):
        return False
    over = row is None or row.over_at is not None
    return over or (row is not None and reversals.is_reversal_over(row.proposal, now))


def _build_undo_status(
    pk: str, row: Reversal | None, *, may: bool, stopped: bool
) -> UndoStatus:
    offered = may and not stopped
    return UndoStatus(
        word=_describe_reversal(row.proposal) if row else "",
        url=_build_proposal_url(row.proposal) if row else "",
        offer=reverse("agents:reversal", args=[pk]) if offered else "",
        stopped=stopped,
    )


def _build_proposal_url(proposal: Proposal) -> str:
    request = getattr(proposal, "request", None)
    if request is not None:
        return reverse("reviews:request_detail", args=[request.pk])
    return reverse("agents:thread", args=[proposal.agent, proposal.thread])


def _describe_reversal(proposal: Proposal) -> str:
    if proposal.blocked_by:
        return "Reversal blocked"
    execution = reversals.find_newest_execution(proposal)
    if execution is not None:
        if execution.status == ExecutionStatus.QUEUED:
            return "Reversal approved"
        if execution.status == ExecutionStatus.UNKNOWN:
            return "Reversal: result unknown"
        return f"Reversal {EXECUTION_SPECS[execution.status].key}"
    request = getattr(proposal, "request", None)
    if request is None or request.status in OPEN:
        return "Reversal proposed"
    return f"Reversal {request.status}"


def group_reversals(proposals: Iterable[Proposal]) -> dict[str, ReversedEffect]:
    """The effects that these proposals undo, by proposal id; two queries if a person
    made one of them for that."""
    made = [proposal.pk for proposal in proposals if proposal.source == REVERSAL_SOURCE]
    if not made:
        return {}
    revision = "execution__grant__revision"
    rows = Reversal.objects.filter(proposal__in=made).select_related(
        "execution__proposal__request", f"{revision}__tool", f"{revision}__proposal"
    )
    people = Person.objects.in_bulk({row.by for row in rows}, field_name="public_id")
    return {
        row.proposal_id: _build_reversed_effect(row, people.get(row.by)) for row in rows
    }


def _build_reversed_effect(row: Reversal, who: Person | None) -> ReversedEffect:
    return ReversedEffect(
        effect=describe.build_effect_sentence(row.execution.grant.revision),
        url=_build_proposal_url(row.execution.proposal),
        by=who or "Someone",
        at=row.at,
    )


def find_execution_undo(
    person: Person,
    execution: Execution | None,
    proposal: Proposal,
    tool: int | None,
    now: datetime,
) -> UndoStatus:
    """The undo status of one execution of this proposal, of whatever status."""
    if execution is None or execution.status != ExecutionStatus.SUCCEEDED:
        return UndoStatus()
    effect = ExecutedEffect(tool, proposal.agent, proposal.thread)
    return build_undo_statuses(person, {execution.pk: effect}, now).get(
        execution.pk, UndoStatus()
    )
