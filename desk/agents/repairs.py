"""The page models of repairs and reversals: which repairs a run allows, the list of
proposed repairs, one repair before and after, and the preview of a reversal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.dateparse import parse_datetime

from agents import repairs as operations
from agents import selectors
from agents.choices import ThreadStatus
from agents.models import Checkpoint, Thread
from journal import canonical
from journal.errors import DomainError, NotFound
from policies.models import Person
from reviews import permissions
from reviews.choices import (
    IN_FLIGHT,
    ExecutionStatus,
    RepairChange,
    RepairStatus,
    RepairSubject,
)
from reviews.effects import describe
from reviews.effects.wording import flatten_value
from reviews.executions import repairs, reversals
from reviews.models import Execution, Repair
from reviews.presenters import present_effect
from reviews.presenters.shapes import SentencePart
from reviews.roles import Permission

from ..components import log_lines, undo, visibility
from ..components.undo import UndoStatus
from .visibility import load_agent

MAX_SHOWN = 50
CHANGE_TITLES = {
    RepairChange.SAY_UNKNOWN: "Mark a result as unknown",
    RepairChange.NEVER_RUN: "Refuse an overdue execution",
    RepairChange.FINISH: "End a run as failed",
    RepairChange.CHECKPOINT: "Correct a checkpoint",
}
CONSEQUENCES = {
    RepairChange.SAY_UNKNOWN: "The attempt ends. Counterseal looks the result up at the"
    " tool's service if it can; otherwise a person records it.",
    RepairChange.NEVER_RUN: "It never runs. The agent is told that it was refused.",
    RepairChange.FINISH: "Its open requests are withdrawn and its unused permits"
    " revoked. Executions that are running continue.",
    RepairChange.CHECKPOINT: "The agent resumes from a new version. The previous"
    " version and the agent's sealed state are kept.",
}
MAY_HAVE_RUN = (
    "A backup restored it, so it may have run. Its result becomes unknown, and the"
    " tool's service or a person settles it."
)
# Fields of the records under other names on the page.
FIELD_LABELS = {
    "resume_at": "resumes at",
    "fence": "attempt number",
    "grant": "permit",
}
TIME_FIELDS = {"lease until", "window until"}
EMPTY = "empty"
STATUS_WORDS = {
    RepairStatus.PROPOSED: ("Awaiting confirmation", "wait"),
    RepairStatus.APPLIED: ("Applied", "ok"),
    RepairStatus.REFUSED: ("Refused", "no"),
    RepairStatus.LAPSED: ("Expired unconfirmed", "void"),
}


@dataclass(frozen=True, slots=True)
class RepairOffer:
    """One change that this person may propose. `effect` is the execution's effect in
    words, empty for a change of the run or its checkpoint; `shown` is what the form
    sends back."""

    value: str
    label: str
    follows: str
    shown: str
    effect: tuple[SentencePart, ...] = ()


@dataclass(frozen=True, slots=True)
class RunRepairPage:
    """The page on which a person proposes a repair of one run."""

    thread: Thread
    checkpoint: Checkpoint | None
    state: str
    offers: list[RepairOffer]
    why_not: str
    proposed: bool  # a repair of it waits for a second person


@dataclass(frozen=True, slots=True)
class RepairRow:
    """One repair in the list, and who proposed it."""

    repair: Repair
    what: str
    by: Person | str
    word: str
    icon: str


@dataclass(frozen=True, slots=True)
class RepairsPage:
    """The list of repairs: those that wait for a second person, and those settled."""

    open: list[RepairRow]
    past: list[RepairRow]


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """One value before and after. Both may be text of the agent or of a person, unless
    `before_at` gives the value before as a time."""

    name: str
    before: str
    after: str
    before_at: datetime | None = None

    @property
    def moved(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class RepairPage:
    """One repair: what it changes, why, and what this person may do about it."""

    line: RepairRow
    follows: str
    effect: tuple[SentencePart, ...]  # of the execution that the repair changes, if any
    settled_by: Person | None
    differences: list[ValueDifference]
    why_not: str  # why this person may not confirm it
    may_refuse: bool
    own: bool
    shown: str  # what the form sends back

    @property
    def open(self) -> bool:
        return self.line.repair.status == RepairStatus.PROPOSED


def check_reader(person: Person) -> None:
    """Raise NotFound for a person who may not see alarms, and so no repairs."""
    if not permissions.has_permission(person, Permission.SEE_ALARMS):
        raise NotFound


def build_list_page(person: Person) -> RepairsPage:
    """Build the list of repairs, newest first. Raises NotFound for a person who may not
    see them."""
    check_reader(person)
    rows = Repair.objects.order_by("-proposed_at")
    open_ = list(rows.filter(status=RepairStatus.PROPOSED))
    past = list(rows.exclude(status=RepairStatus.PROPOSED)[:MAX_SHOWN])
    people = _load_people([*open_, *past])
    return RepairsPage(
        open=[_build_repair_row(repair, people) for repair in open_],
        past=[_build_repair_row(repair, people) for repair in past],
    )


def build_repair_page(person: Person, pk: str) -> RepairPage:
    """Build the page of one repair. Raises NotFound."""
    check_reader(person)
    row = Repair.objects.filter(pk=pk).first()
    if row is None:
        raise NotFound
    people = _load_people([row])
    why_not = _describe_obstacle(person, row)
    own = row.proposed_by == person.public_id
    return RepairPage(
        line=_build_repair_row(row, people),
        follows=_describe_consequence(RepairChange(row.change), row.after),
        effect=_build_effect(row),
        settled_by=people.get(row.settled_by),
        differences=list(_list_differences(row.before, row.after)),
        why_not=why_not,
        may_refuse=own or not why_not,
        own=own,
        shown=canonical.format_shown(repairs.build_shown_repair(row)),
    )


def _build_effect(row: Repair) -> tuple[SentencePart, ...]:
    if row.subject != RepairSubject.EXECUTION:
        return ()
    rows = Execution.objects.select_related("grant__revision__tool")
    return describe.build_effect_sentence(rows.get(pk=row.key).grant.revision)


def _describe_obstacle(person: Person, row: Repair) -> str:
    try:
        repairs.check_may_confirm(person, row)
    except DomainError as error:
        return error.cause
    return ""


def _load_people(rows: Sequence[Repair]) -> dict[str, Person]:
    return log_lines.load_people(
        who for row in rows for who in (row.proposed_by, row.settled_by)
    )


def _build_repair_row(row: Repair, people: dict[str, Person]) -> RepairRow:
    word, icon = STATUS_WORDS[RepairStatus(row.status)]
    return RepairRow(
        repair=row,
        what=CHANGE_TITLES[RepairChange(row.change)],
        by=people.get(row.proposed_by, "Someone"),
        word=word,
        icon=icon,
    )


def _list_differences(before: Any, after: Any) -> Iterator[ValueDifference]:
    was, is_to_be = (
        dict(flatten_value(values, empty=EMPTY)) for values in (before, after)
    )
    for name in dict.fromkeys([*was, *is_to_be]):
        yield ValueDifference(
            FIELD_LABELS.get(name, name),
            was.get(name, EMPTY),
            is_to_be.get(name, EMPTY),
            parse_datetime(was.get(name, "")) if name in TIME_FIELDS else None,
        )


def build_run_repair_page(
    person: Person, slug: str, name: str, now: datetime
) -> RunRepairPage:
    """Build the page with the repairs of one run that this person may propose. Raises
    NotFound."""
    check_reader(person)
    agent = load_agent(person, slug)
    thread = agent.threads.filter(name=name).first()
    if thread is None:
        raise NotFound
    checkpoint = thread.checkpoints.defer("blob").order_by("-number").first()
    may = permissions.has_permission(person, Permission.PROPOSE_REPAIR)
    proposed = _list_proposed(thread)
    return RunRepairPage(
        thread=thread,
        checkpoint=checkpoint,
        state=_format_state(checkpoint),
        offers=list(_list_offers(person, thread, checkpoint, proposed, now))
        if may
        else [],
        proposed=bool(proposed),
        why_not="" if may else "Only a supervisor can propose a repair.",
    )


def _describe_consequence(change: RepairChange, after: Mapping[str, Any]) -> str:
    unknown = after.get("status") == ExecutionStatus.UNKNOWN
    if change is RepairChange.NEVER_RUN and unknown:
        return MAY_HAVE_RUN
    return CONSEQUENCES[change]


def _format_state(checkpoint: Checkpoint | None) -> str:
    state = checkpoint.state if checkpoint else {}
    return json.dumps(state, indent=2, ensure_ascii=False)


def _list_offers(
    person: Person,
    thread: Thread,
    checkpoint: Checkpoint | None,
    proposed: set[str],
    now: datetime,
) -> Iterator[RepairOffer]:
    for execution in _list_stuck_executions(person, thread, now):
        if execution.pk in proposed:
            continue
        change = (
            RepairChange.SAY_UNKNOWN
            if execution.status == ExecutionStatus.CLAIMED
            else RepairChange.NEVER_RUN
        )
        effect = describe.build_effect_sentence(execution.grant.revision)
        value = f"{change}:{execution.pk}"
        wanted = repairs.build_execution_repair(execution, change, now)
        follows = _describe_consequence(change, wanted.after)
        shown = _format_shown(wanted.before)
        yield RepairOffer(value, CHANGE_TITLES[change], follows, shown, effect)
    if RepairSubject.THREAD not in proposed and _may_finish(thread, now):
        yield _build_run_offer(thread, RepairChange.FINISH)
    if checkpoint is not None and RepairSubject.CHECKPOINT not in proposed:
        yield _build_run_offer(thread, RepairChange.CHECKPOINT)


def _build_run_offer(thread: Thread, change: RepairChange) -> RepairOffer:
    shown = _format_shown(operations.read_present_values(thread, change))
    return RepairOffer(change, CHANGE_TITLES[change], CONSEQUENCES[change], shown)


def _format_shown(before: Mapping[str, Any]) -> str:
    return canonical.format_shown(repairs.build_shown_values(before))


def _may_finish(thread: Thread, now: datetime) -> bool:
    return thread.status == ThreadStatus.RUNNING and selectors.is_silent(thread, now)


def _list_proposed(thread: Thread) -> set[str]:
    """List what a proposed repair of this run concerns already: executions by id, the
    run and its checkpoint by RepairSubject."""
    rows = Repair.objects.filter(
        agent=thread.agent.slug, thread=thread.name, status=RepairStatus.PROPOSED
    )
    return {
        row.key if row.subject == RepairSubject.EXECUTION else row.subject
        for row in rows
    }


def _list_stuck_executions(
    person: Person, thread: Thread, now: datetime
) -> Iterator[Execution]:
    """List the run's executions that are stuck long enough for a repair, in this
    person's queues; none for a person who is stopped as a reviewer."""
    if permissions.is_reviewer_stopped(person):
        return
    rows = Execution.objects.filter(
        proposal__agent=thread.agent.slug,
        proposal__thread=thread.name,
        status__in=IN_FLIGHT,
        grant__revision__tool__queue__in=permissions.queues_of(person),
    ).select_related("grant__revision__tool", "grant__proposal", "proposal")
    for row in rows.order_by("queued_at")[:MAX_SHOWN]:
        held = (
            row.lease_until is not None and row.lease_until + repairs.STUCK_AFTER <= now
        )
        late = row.grant.expires_at + repairs.STUCK_AFTER <= now
        if held if row.status == ExecutionStatus.CLAIMED else late:
            yield row


def check_execution_of_run(execution_id: str, slug: str, name: str) -> None:
    """Raise NotFound for an execution of another run than the page's."""
    executions = Execution.objects.filter(
        pk=execution_id, proposal__agent=slug, proposal__thread=name
    )
    if not executions.exists():
        raise NotFound


def is_execution_repair(pk: str) -> bool:
    """Whether the repair is of an execution, which the gate's own operation applies."""
    return Repair.objects.filter(pk=pk, subject=RepairSubject.EXECUTION).exists()


@dataclass(frozen=True, slots=True)
class ReversalPage:
    """What would undo an effect. `why_not` is the operation's reason why this person
    cannot propose it, empty when they can."""

    execution: Execution
    effect: tuple[SentencePart, ...]
    back: str
    would: tuple[SentencePart, ...]
    tool: str
    undo: UndoStatus
    why_not: str


def build_reversal_page(person: Person, pk: str, now: datetime) -> ReversalPage:
    """Build the preview of a reversal. Raises NotFound for an effect that this person
    may not see."""
    visible = visibility.select_visible_proposals(person).values("pk")
    rows = Execution.objects.select_related(
        "proposal__request", "grant__revision__tool"
    )
    execution = rows.filter(pk=pk, proposal__in=visible).first()
    if execution is None:
        raise NotFound
    would, tool, why_not = _preview_reversal(person, execution, now)
    proposal, revision = execution.proposal, execution.grant.revision
    return ReversalPage(
        execution=execution,
        effect=describe.build_effect_sentence(revision),
        back=_build_back_url(execution),
        would=would,
        tool=tool,
        undo=undo.find_execution_undo(
            person, execution, proposal, revision.tool_id, now
        ),
        why_not=why_not,
    )


def _preview_reversal(
    person: Person, execution: Execution, now: datetime
) -> tuple[tuple[SentencePart, ...], str, str]:
    try:
        plan = reversals.plan_reversal(execution.pk, person, now)
    except DomainError as error:
        return (), "", error.cause
    shown = present_effect(plan.definition, plan.args)
    return tuple(shown.sentence), plan.tool.name, ""


def _build_back_url(execution: Execution) -> str:
    request = getattr(execution.proposal, "request", None)
    if request is not None:
        return reverse("reviews:request_detail", args=[request.pk])
    run = [execution.proposal.agent, execution.proposal.thread]
    return reverse("agents:thread", args=run)
