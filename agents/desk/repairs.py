"""The page models of repairs and reversals: which repairs a run allows, the list of
proposed repairs, one repair before and after, and the preview of a reversal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.urls import reverse

from agents import selectors
from agents.choices import ThreadStatus
from agents.models import Checkpoint, Thread
from journal.errors import DomainError, NotFound
from policies.models import Person
from reviews import permissions
from reviews.choices import ExecutionStatus, RepairChange, RepairStatus, RepairSubject
from reviews.desk.components import navigation, undo, visibility
from reviews.desk.components.navigation import UpkeepTab
from reviews.effects import describe
from reviews.effects.wording import lines_of
from reviews.executions import repairs, reversals
from reviews.models import Execution, Repair
from reviews.permissions import Permission
from reviews.presenters import present
from reviews.presenters.shapes import Part

from .visibility import load

SHOWN = 50
WHAT = {
    RepairChange.SAY_UNKNOWN: "Say that an outcome is unknown",
    RepairChange.NEVER_RUN: "Refuse what never ran in time",
    RepairChange.FINISH: "End a run as failed",
    RepairChange.CHECKPOINT: "Correct a checkpoint",
}
FOLLOWS = {
    RepairChange.SAY_UNKNOWN: "Nobody goes on with it. Its service is asked what became"
    " of it where it can be; otherwise a person says.",
    RepairChange.NEVER_RUN: "It never runs. The agent is told that it was refused.",
    RepairChange.FINISH: "Its open requests are withdrawn and its unused grants"
    " revoked. What runs goes on to its end.",
    RepairChange.CHECKPOINT: "A new version, from which the agent goes on. The one"
    " before it stays, and so does the agent's sealed state.",
}
MAY_HAVE_RUN = (
    "It came back with a backup and may have run: from then on it is unknown, and its"
    " service or a person is asked."
)
STATUS = {
    RepairStatus.PROPOSED: ("Waits for a second person", "wait"),
    RepairStatus.APPLIED: ("Done", "ok"),
    RepairStatus.REFUSED: ("Refused", "no"),
    RepairStatus.LAPSED: ("Nobody confirmed it in time", "void"),
}


@dataclass(frozen=True, slots=True)
class Offer:
    """One change that this person may propose. `effect` is the execution's effect in
    words, empty for a change of the run or its checkpoint."""

    value: str
    label: str
    follows: str
    effect: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class RepairForRun:
    """The page on which a person proposes a repair of one run."""

    agent: str
    thread: str
    thread_url: str
    offers: list[Offer]
    resume_at: str
    state: str
    has_checkpoint: bool
    why_not: str
    proposed: bool  # a repair of it waits for a second person


@dataclass(frozen=True, slots=True)
class RepairLine:
    """One repair in the list."""

    id: str
    url: str
    what: str
    agent: str
    thread: str
    thread_url: str
    by: str
    at: datetime
    word: str
    icon: str


@dataclass(frozen=True, slots=True)
class RepairsPage:
    """The list of repairs: those that wait for a second person, and those settled."""

    open: list[RepairLine]
    past: list[RepairLine]
    upkeep: list[UpkeepTab] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Difference:
    """One value before and after. Both may be text of the agent or of a person."""

    name: str
    before: str
    after: str

    @property
    def moved(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class RepairPage:
    """One repair: what it changes, why, and what this person may do about it."""

    line: RepairLine
    follows: str
    effect: tuple[Part, ...]  # of the execution that the repair changes, if any
    subject: str
    reason: str
    lapses_at: datetime
    settled_by: str
    settled_at: datetime | None
    answer: str
    differences: list[Difference]
    why_not: str  # why this person may not confirm it
    may_refuse: bool
    own: bool
    upkeep: list[UpkeepTab]

    @property
    def open(self) -> bool:
        return self.line.word == STATUS[RepairStatus.PROPOSED][0]


def check_reader(person: Person) -> None:
    """Raise NotFound for a person who may not see alarms, and so no repairs."""
    if not permissions.allowed(person, Permission.SEE_ALARMS):
        raise NotFound


def page(person: Person) -> RepairsPage:
    """Build the list of repairs, newest first. Raises NotFound for a person who may not
    see them."""
    check_reader(person)
    rows = Repair.objects.order_by("-proposed_at")
    open_ = list(rows.filter(status=RepairStatus.PROPOSED))
    past = list(rows.exclude(status=RepairStatus.PROPOSED)[:SHOWN])
    names = _names([*open_, *past])
    return RepairsPage(
        open=[_line(one, names) for one in open_],
        past=[_line(one, names) for one in past],
        upkeep=navigation.tabs(person, navigation.REPAIRS),
    )


def one(person: Person, pk: str) -> RepairPage:
    """Build the page of one repair. Raises NotFound."""
    check_reader(person)
    row = Repair.objects.filter(pk=pk).first()
    if row is None:
        raise NotFound
    names = _names([row])
    why_not = _why_not(person, row)
    own = row.proposed_by == person.public_id
    return RepairPage(
        line=_line(row, names),
        follows=_follows(RepairChange(row.change), row.after),
        effect=_effect(row),
        subject=f"{row.subject} {row.key}",
        reason=row.reason,
        lapses_at=row.lapses_at,
        settled_by=names.get(row.settled_by, "") if row.settled_by else "",
        settled_at=row.settled_at,
        answer=row.answer,
        differences=list(_differences(row.before, row.after)),
        why_not=why_not,
        may_refuse=own or not why_not,
        own=own,
        upkeep=navigation.tabs(person, navigation.REPAIRS),
    )


def _effect(row: Repair) -> tuple[Part, ...]:
    if row.subject != RepairSubject.EXECUTION:
        return ()
    rows = Execution.objects.select_related("grant__revision__tool")
    return describe.effect(rows.get(pk=row.key).grant.revision)


def _why_not(person: Person, row: Repair) -> str:
    try:
        repairs.check_may_confirm(person, row)
    except DomainError as error:
        return error.detail.removesuffix(" Nothing was changed.")
    return ""


def _names(rows: Sequence[Repair]) -> dict[str, str]:
    ids = {row.proposed_by for row in rows} | {row.settled_by for row in rows}
    return {one.public_id: str(one) for one in Person.objects.filter(public_id__in=ids)}


def _line(row: Repair, names: dict[str, str]) -> RepairLine:
    word, icon = STATUS[RepairStatus(row.status)]
    return RepairLine(
        id=row.pk,
        url=reverse("agents:repair", args=[row.pk]),
        what=WHAT[RepairChange(row.change)],
        agent=row.agent,
        thread=row.thread,
        thread_url=reverse("agents:thread", args=[row.agent, row.thread]),
        by=names.get(row.proposed_by, "Someone"),
        at=row.proposed_at,
        word=word,
        icon=icon,
    )


def _differences(before: Any, after: Any) -> Iterator[Difference]:
    was, is_to_be = dict(lines_of(before)), dict(lines_of(after))
    for name in dict.fromkeys([*was, *is_to_be]):
        said = "goes on at" if name == "resume_at" else name
        yield Difference(said, was.get(name, "nothing"), is_to_be.get(name, "nothing"))


def for_run(person: Person, slug: str, name: str, now: datetime) -> RepairForRun:
    """Build the page with the repairs of one run that this person may propose. Raises
    NotFound."""
    check_reader(person)
    agent = load(person, slug)
    thread = agent.threads.filter(name=name).first()
    if thread is None:
        raise NotFound
    checkpoint = thread.checkpoints.defer("blob").order_by("-number").first()
    may = permissions.allowed(person, Permission.PROPOSE_REPAIR)
    proposed = _proposed(thread)
    return RepairForRun(
        agent=slug,
        thread=name,
        thread_url=reverse("agents:thread", args=[slug, name]),
        offers=list(_offers(person, thread, checkpoint, proposed, now)) if may else [],
        proposed=bool(proposed),
        resume_at=checkpoint.resume_at if checkpoint else "",
        state=_typed(checkpoint),
        has_checkpoint=checkpoint is not None,
        why_not="" if may else "Only a supervisor proposes a repair.",
    )


def _follows(change: RepairChange, after: Mapping[str, Any]) -> str:
    unknown = after.get("status") == ExecutionStatus.UNKNOWN
    if change is RepairChange.NEVER_RUN and unknown:
        return MAY_HAVE_RUN
    return FOLLOWS[change]


def _typed(checkpoint: Checkpoint | None) -> str:
    state = checkpoint.state if checkpoint else {}
    return json.dumps(state, indent=2, ensure_ascii=False)


def _offers(
    person: Person,
    thread: Thread,
    checkpoint: Checkpoint | None,
    proposed: set[str],
    now: datetime,
) -> Iterator[Offer]:
    for execution in _stuck(person, thread, now):
        if execution.pk in proposed:
            continue
        change = (
            RepairChange.SAY_UNKNOWN
            if execution.status == ExecutionStatus.CLAIMED
            else RepairChange.NEVER_RUN
        )
        effect = describe.effect(execution.grant.revision)
        value = f"{change}:{execution.pk}"
        after = repairs.of_execution(execution, change, now).after
        yield Offer(value, WHAT[change], _follows(change, after), effect)
    if RepairSubject.THREAD not in proposed and _may_finish(thread, now):
        finish = RepairChange.FINISH
        yield Offer(finish, WHAT[finish], FOLLOWS[finish])
    if checkpoint is not None and RepairSubject.CHECKPOINT not in proposed:
        correct = RepairChange.CHECKPOINT
        yield Offer(correct, WHAT[correct], FOLLOWS[correct])


def _may_finish(thread: Thread, now: datetime) -> bool:
    return thread.status == ThreadStatus.RUNNING and selectors.is_silent(thread, now)


def _proposed(thread: Thread) -> set[str]:
    """List what a proposed repair of this run concerns already: executions by id, the
    run and its checkpoint by RepairSubject."""
    rows = Repair.objects.filter(
        agent=thread.agent.slug, thread=thread.name, status=RepairStatus.PROPOSED
    )
    return {
        row.key if row.subject == RepairSubject.EXECUTION else row.subject
        for row in rows
    }


def _stuck(person: Person, thread: Thread, now: datetime) -> Iterator[Execution]:
    """List the run's executions that are stuck long enough for a repair, in this
    person's queues; none for a person who is stopped as a reviewer."""
    if permissions.reviewer_stopped(person):
        return
    rows = Execution.objects.filter(
        proposal__agent=thread.agent.slug,
        proposal__thread=thread.name,
        status__in=[ExecutionStatus.CLAIMED, ExecutionStatus.QUEUED],
        grant__revision__tool__queue__in=permissions.queues_of(person),
    ).select_related("grant__revision__tool", "grant__proposal", "proposal")
    for row in rows.order_by("queued_at")[:SHOWN]:
        held = row.lease_until is not None and row.lease_until + repairs.STUCK <= now
        late = row.grant.expires_at + repairs.STUCK <= now
        if held if row.status == ExecutionStatus.CLAIMED else late:
            yield row


def check_of_run(execution_id: str, slug: str, name: str) -> None:
    """Raise NotFound for an execution of another run than the page's."""
    found = Execution.objects.filter(
        pk=execution_id, proposal__agent=slug, proposal__thread=name
    )
    if not found.exists():
        raise NotFound


def is_of_execution(pk: str) -> bool:
    """Whether the repair is of an execution, which the gate's own operation applies."""
    return Repair.objects.filter(pk=pk, subject=RepairSubject.EXECUTION).exists()


@dataclass(frozen=True, slots=True)
class ReversalPage:
    """What would undo an effect. `why_not` is the operation's reason why this person
    cannot propose it, empty when they can."""

    id: str
    effect: tuple[Part, ...]
    back: str
    would: tuple[Part, ...]
    tool: str
    agent: str
    thread: str
    thread_url: str
    word: str
    word_url: str
    why_not: str


def undo_page(person: Person, pk: str, now: datetime) -> ReversalPage:
    """Build the preview of a reversal. Raises NotFound for an effect that this person
    may not see."""
    mine = visibility.proposals(person).values("pk")
    rows = Execution.objects.select_related(
        "proposal__request", "grant__revision__tool"
    )
    execution = rows.filter(pk=pk, proposal__in=mine).first()
    if execution is None:
        raise NotFound
    would, tool, why_not = _would(person, execution, now)
    proposal, revision = execution.proposal, execution.grant.revision
    known = undo.of_execution(person, execution, proposal, revision.tool_id, now)
    return ReversalPage(
        id=pk,
        effect=describe.effect(revision),
        back=_back(execution),
        would=would,
        tool=tool,
        agent=proposal.agent,
        thread=proposal.thread,
        thread_url=reverse("agents:thread", args=[proposal.agent, proposal.thread]),
        word=known.word,
        word_url=known.url,
        why_not=why_not,
    )


def _would(
    person: Person, execution: Execution, now: datetime
) -> tuple[tuple[Part, ...], str, str]:
    try:
        found = reversals.of(execution.pk, person, now)
    except DomainError as error:
        return (), "", error.detail.removesuffix(" Nothing was recorded.")
    shown = present(found.definition, found.args)
    return tuple(shown.sentence), found.tool.name, ""


def _back(execution: Execution) -> str:
    request = getattr(execution.proposal, "request", None)
    if request is not None:
        return reverse("reviews:request_detail", args=[request.pk])
    run = [execution.proposal.agent, execution.proposal.thread]
    return reverse("agents:thread", args=run)
