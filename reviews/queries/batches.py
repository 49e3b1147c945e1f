"""Batches as people see them: the list, one that waits, and what came of one that was
decided (ux.md 4.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet, Sum
from django.urls import reverse

from journal.errors import DomainError, NotFound
from policies import tools
from policies.documents import ToolDefinition
from policies.models import Person
from policies.money import Money
from reviews import alike, membership, permissions
from reviews.choices import BatchStatus, ExecutionStatus, RequestStatus
from reviews.membership import Member
from reviews.models import (
    ApprovalRequest,
    Batch,
    BatchItem,
    Execution,
    Lease,
    RequestVersion,
    Revision,
)
from reviews.permissions import Permission
from reviews.presenters import Presentation
from reviews.presenters.common import Subject, figure, reversal
from reviews.presenters.leaves import in_order
from reviews.presenters.shapes import Cell, Part, Reversal, Text, Value

from . import batch_table, clocks, samples, showing, states
from .batch_table import Column, Line, Table
from .clocks import Clock
from .samples import Opened
from .states import State, Tally

OPEN = (BatchStatus.FORMING, BatchStatus.OPEN)
DECIDED_FOR = timedelta(days=7)
MOST = 50
WORDS = 280  # characters of a text of the agent that differs from the others


def visible(person: Person) -> QuerySet[Batch]:
    """Batches of the person's queues, or all by role."""
    found = Batch.objects.select_related("tool", "queue")
    if permissions.allowed(person, Permission.SEE_ALL):
        return found
    return found.filter(queue__in=permissions.queues_of(person))


@dataclass(frozen=True, slots=True)
class Listed:
    """One batch as a line."""

    id: str
    url: str
    title: tuple[Part, ...]
    risk: str
    tier: str
    tool: str
    agent: str
    forming: bool
    clock: Clock | None
    at: datetime | None
    said: str


@dataclass(frozen=True, slots=True)
class ListPage:
    waiting: list[Listed]
    decided: list[Listed]


def listed(person: Person, *, now: datetime) -> ListPage:
    """What waits by deadline, then what was decided in a week, in four queries."""
    waiting = list(visible(person).filter(status__in=OPEN).order_by("formed_at")[:MOST])
    over = visible(person).filter(
        status=BatchStatus.DECIDED, settled_at__gt=now - DECIDED_FOR
    )
    decided = list(over.order_by("-settled_at")[:MOST])
    facts = _facts([*waiting, *decided], now)
    lines = [
        _line(batch, facts[batch.pk], now) for batch in waiting if batch.pk in facts
    ]
    lines.sort(key=lambda line: line.at or now)
    return ListPage(
        [line for line in lines if line.clock is not None],
        [_line(batch, facts[batch.pk], now) for batch in decided if batch.pk in facts],
    )


def _facts(batches: Sequence[Batch], now: datetime) -> dict[str, Mapping[str, Any]]:
    """How many there are in each, their sum and the earliest deadline."""
    place = "request__batch_items"
    waiting = Q(request__status=RequestStatus.PENDING, request__expires_at__gt=now)
    decided = Q(**{f"{place}__batch__status": BatchStatus.DECIDED})
    rows = (
        RequestVersion.objects.filter(
            waiting | decided,
            number=F("request__version"),
            **{f"{place}__batch__in": batches, f"{place}__left_at": None},
        )
        .values(batch=F(f"{place}__batch"))
        .annotate(
            count=Count("pk"),
            sum=Sum("revision__amount_minor"),
            currency=Min("revision__currency"),
            expires=Min("request__expires_at"),
            since=Min("request__opened_at"),
            risk=Min("risk"),
            tier=Min("tier"),
        )
        .order_by()
    )
    return {row["batch"]: row for row in rows}


def _line(batch: Batch, facts: Mapping[str, Any], now: datetime) -> Listed:
    total = None if facts["sum"] is None else Money(facts["sum"], facts["currency"])
    waits = batch.status in OPEN and facts["count"] > 1
    return Listed(
        id=batch.pk,
        url=reverse("reviews:batch", args=[batch.pk]),
        title=title(tools.definition(batch.tool), facts["count"], total, None),
        risk=facts["risk"],
        tier=facts["tier"],
        tool=batch.tool.name,
        agent=batch.agent,
        forming=batch.status == BatchStatus.FORMING,
        clock=clocks.until(facts["expires"], since=facts["since"], now=now)
        if waits
        else None,
        at=batch.settled_at or facts["expires"],
        said="Halted after a failure" if batch.halted_at else "",
    )


def title(
    definition: ToolDefinition, count: int, total: Money | None, largest: Money | None
) -> tuple[Part, ...]:
    """What the batch as a whole does, in the policy's own words and our figures."""
    parts: list[Part] = [Text(f"{definition.title}: ")]
    parts.append(Value(called(definition, count), untrusted=False))
    if total is not None:
        parts += [Text(", "), Value(figure(total), untrusted=False), Text(" in all")]
    if largest is not None:
        parts += [Text(", largest "), Value(figure(largest), untrusted=False)]
    return tuple(parts)


def called(definition: ToolDefinition, count: int) -> str:
    """`37 refunds`."""
    batch = definition.batchable
    many = batch.called if batch else "requests"
    return f"{count} {many.removesuffix('s') if count == 1 else many}"


@dataclass(frozen=True, slots=True)
class Within:
    """That a request is part of a batch, for its own page."""

    id: str
    url: str
    count: int


def containing(request: ApprovalRequest, definition: ToolDefinition) -> Within | None:
    """The batch a request waits in; one query, and none for what never batches."""
    if definition.batchable is None or request.status != RequestStatus.PENDING:
        return None
    item = (
        BatchItem.objects.filter(
            request=request, left_at__isnull=True, batch__status__in=OPEN
        )
        .annotate(
            members=Count(
                "batch__items",
                filter=Q(
                    batch__items__left_at__isnull=True,
                    batch__items__request__status=RequestStatus.PENDING,
                ),
            )
        )
        .first()
    )
    if item is None or item.members < 2:
        return None
    url = reverse("reviews:batch", args=[item.batch_id])
    return Within(item.batch_id, url, item.members)


# One batch.
@dataclass
class Loaded:
    """One batch with its members as they are now, for one person."""

    person: Person
    batch: Batch
    members: list[Member]
    gone: list[Member]
    held: Mapping[str, str]  # request -> who else is at it
    executions: Mapping[str, Execution]  # by proposal
    now: datetime

    @property
    def definition(self) -> ToolDefinition:
        return tools.definition(self.batch.tool)

    @property
    def waits(self) -> bool:
        return self.batch.status in OPEN

    @cached_property
    def why_not(self) -> str:
        """Empty when this person may decide what is in it; the operation's check."""
        if not self.waits:
            return "This batch is decided."
        try:
            permissions.admitted_role(self.person, self.batch.queue_id)
        except DomainError as error:
            return error.detail
        return ""

    @cached_property
    def marks(self) -> dict[str, str]:
        return {member.id: member.mark for member in self.members}

    def blocked(self, member: Member) -> str:
        """Why this one cannot be in this person's decision; empty when it can."""
        revision = member.version.revision
        if self.person.public_id in member.request.proposal.barred:
            return "You started this run, so someone else must decide it."
        if permissions.above_ceiling(
            self.person, revision.amount_minor, revision.currency
        ):
            return "This amount is above what you may decide."
        who = self.held.get(member.id)
        return f"{who} is deciding this." if who else ""

    @cached_property
    def choosable(self) -> list[str]:
        return [one.id for one in self.members if not self.blocked(one)]


def load(person: Person, pk: str, now: datetime) -> Loaded:
    """One batch, in at most seven queries. Raises NotFound."""
    batch = visible(person).filter(pk=pk).first()
    if batch is None:
        raise NotFound
    found = membership.load(batch, now=now)
    waits = batch.status in OPEN
    return Loaded(
        person=person,
        batch=batch,
        members=[one for one in found if not waits or not one.gone],
        gone=[one for one in found if waits and one.gone],
        held=_held(found, person, now) if waits else {},
        executions={} if waits else _executions(batch),
        now=now,
    )


def _held(members: Iterable[Member], person: Person, now: datetime) -> dict[str, str]:
    leases = Lease.objects.filter(
        request__in=[member.id for member in members], until__gt=now
    ).exclude(holder=person)
    return {row.request_id: str(row.holder) for row in leases.select_related("holder")}


def _executions(batch: Batch) -> dict[str, Execution]:
    rows = batch.executions.select_related("grant")
    return {row.proposal_id: row for row in rows}


@dataclass(frozen=True, slots=True)
class Row:
    """One member as a line of the table."""

    id: str
    url: str
    mark: str
    first: Cell | None  # what tells it from the others
    others: Sequence[tuple[Column, Cell]]
    reasons: Sequence[str]
    changed: str
    blocked: str
    checked: bool
    sample: bool
    peek: Peek | None  # once it was opened


@dataclass(frozen=True, slots=True)
class Peek:
    """R1 to R3 of one member, in the table."""

    id: str
    url: str
    shown: Presentation | None
    rest: Sequence[tuple[str, Cell]]  # every argument that is in no change
    at: datetime
    token: str
    span: int = 0
    plain_kinds = ("text", "number", "nothing")


@dataclass(frozen=True, slots=True)
class Said:
    """What the agent says of a member, where it is not what it says of most."""

    id: str
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What a page sent: which rows are in, which were opened, what it had shown.
    Without `made` nothing was chosen yet, and everything is in."""

    items: frozenset[str] = frozenset()
    made: bool = False
    opened: tuple[str, ...] = ()
    open_now: tuple[str, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)


class BatchPage:
    """A batch that waits, as this person may decide it."""

    def __init__(
        self,
        loaded: Loaded,
        selection: Selection | None = None,
        *,
        armed: Any = None,
        problem: DomainError | None = None,
        focus: str = "",
    ) -> None:
        self.loaded = loaded
        self.selection = selection or Selection()
        self.armed = armed
        self.problem = problem
        self.focus = focus
        self.id = loaded.batch.pk
        self.url = reverse("reviews:batch", args=[self.id])
        self.decide_url = reverse("reviews:batch_decide", args=[self.id])
        self.definition = loaded.definition

    # What it is
    @property
    def short(self) -> str:
        return self.digest.removeprefix("sha256:")[:8]

    @property
    def title(self) -> tuple[Part, ...]:
        total, largest = batch_table.total_of(line.amount for line in self.lines)
        return title(self.definition, len(self.lines), total, largest)

    @cached_property
    def first(self) -> Member:
        return self.loaded.members[0]

    @property
    def risk(self) -> str:
        return self.first.version.risk

    @property
    def tier(self) -> str:
        return self.first.version.tier

    @property
    def tool(self) -> str:
        return self.loaded.batch.tool.name

    @property
    def tool_version(self) -> int:
        return self.loaded.batch.tool.version

    @property
    def agent(self) -> str:
        return self.loaded.batch.agent

    @property
    def policy(self) -> int:
        return self.first.version.policy.number

    @property
    def rules(self) -> list[str]:
        said = [rule["text"] for rule in self.first.version.rules]
        return said or ["The policy wants a person for this tool."]

    @property
    def proposed(self) -> tuple[datetime, datetime]:
        times = [member.request.opened_at for member in self.loaded.members]
        return min(times), max(times)

    @property
    def reversal(self) -> Reversal:
        return reversal(self.definition)

    @property
    def clock(self) -> Clock:
        """The earliest deadline is everybody's."""
        first = min(self.loaded.members, key=lambda member: member.request.expires_at)
        request, now = first.request, self.loaded.now
        return clocks.until(request.expires_at, since=request.opened_at, now=now)

    @property
    def forming_until(self) -> datetime | None:
        """Until when others may still join."""
        batch = self.loaded.batch
        return batch.closes_at if batch.status == BatchStatus.FORMING else None

    # The table
    @cached_property
    def lines(self) -> list[Line]:
        return [line_of(member) for member in self.loaded.members]

    @cached_property
    def table(self) -> Table:
        batch = self.definition.batchable
        return batch_table.build(self.lines, batch.varying if batch else ())

    @cached_property
    def rows(self) -> list[Row]:
        """Every member: what changed under the reader, then what stands out, then in
        the order in which they will run."""
        by_id = {member.id: member for member in self.loaded.members}
        found = [self._row(by_id[entry.id], entry) for entry in self.table.entries]
        return sorted(found, key=lambda row: not row.changed)

    def _row(self, member: Member, entry: batch_table.Entry) -> Row:
        return Row(
            id=member.id,
            url=reverse("reviews:batch_item", args=[self.id, member.id]),
            mark=self.loaded.marks[member.id],
            first=entry.cells[0] if entry.cells else None,
            others=list(zip(self.table.columns, entry.cells, strict=True))[1:],
            reasons=entry.reasons,
            changed=self.selection.changed.get(member.id, ""),
            blocked=self.loaded.blocked(member),
            checked=member.id in self.chosen,
            sample=member.id in self.samples,
            peek=self._peek(member),
        )

    def _peek(self, member: Member) -> Peek | None:
        """What was opened stays open; its first moment counts."""
        if member.id in self.opened:
            return peek_of(self.loaded, member, self.opened[member.id].at)
        return (
            peek_of(self.loaded, member)
            if member.id in self.selection.open_now
            else None
        )

    @property
    def gone(self) -> list[tuple[str, str]]:
        """Who left since: changed rows that cannot be shown as rows any more."""
        known = set(self.loaded.marks)
        return [
            (reverse("reviews:request_detail", args=[pk]), why)
            for pk, why in self.selection.changed.items()
            if pk not in known and pk.startswith("r-")
        ]

    @property
    def span(self) -> int:
        """How many cells a row has: the tick, the columns, what stands out, Open."""
        return max(len(self.table.columns), 1) + 3

    @property
    def samples_said(self) -> str:
        left, count = len(self.unopened), len(self.samples)
        return f"{count - left} of {count} samples opened"

    # The samples
    @cached_property
    def samples(self) -> list[str]:
        return samples.picked(self.id, self.loaded.choosable, self.table.outliers)

    @cached_property
    def opened(self) -> dict[str, Opened]:
        return samples.read(
            self.selection.opened,
            batch=self.id,
            person=self.loaded.person.public_id,
            marks=self.loaded.marks,
        )

    @property
    def unopened(self) -> list[Row]:
        """The samples that are still to be opened, in the order of the page."""
        return [row for row in self.rows if row.sample and row.peek is None]

    # What is chosen
    @cached_property
    def chosen(self) -> list[str]:
        """The rows that a decision is on, in the order of the batch."""
        able = self.loaded.choosable
        if not self.selection.made:
            return able
        return [pk for pk in able if pk in self.selection.items]

    @cached_property
    def left_out(self) -> list[str]:
        return [one.id for one in self.loaded.members if one.id not in self.chosen]

    @cached_property
    def digest(self) -> str:
        chosen = set(self.chosen)
        return alike.digest(
            member.entry for member in self.loaded.members if member.id in chosen
        )

    @cached_property
    def total(self) -> Money | None:
        chosen = set(self.chosen)
        amounts = (line.amount for line in self.lines if line.id in chosen)
        return batch_table.total_of(amounts)[0]

    @property
    def total_said(self) -> str:
        return figure(self.total) if self.total else ""

    @property
    def too_much(self) -> str:
        """Why these are too much for one decision; empty when they are not."""
        batch = self.definition.batchable
        if not alike.too_much(self.total, self.definition) or not batch:
            return ""
        most = figure(batch.total.money) if batch.total else ""
        return f"Together this is above {most}, the most for one batch."

    @property
    def what(self) -> str:
        """`36 refunds, 1,788.20 USD`: what a commit repeats."""
        said = called(self.definition, len(self.chosen))
        return f"{said}, {self.total_said}" if self.total else said

    @property
    def count(self) -> int:
        return len(self.loaded.members)

    # What the agent says
    @cached_property
    def _texts(self) -> list[tuple[str, str]]:
        return [
            (member.id, member.version.revision.rationale)
            for member in self.loaded.members
        ]

    @cached_property
    def rationale(self) -> str:
        """What it says of most of them."""
        return Counter(text for _, text in self._texts).most_common(1)[0][0]

    @property
    def identical(self) -> int:
        return sum(text == self.rationale for _, text in self._texts)

    @cached_property
    def different(self) -> list[Said]:
        names = {row.id: row.first.text if row.first else "" for row in self.rows}
        return [
            Said(pk, names[pk], text[:WORDS] + (" […]" if len(text) > WORDS else ""))
            for pk, text in self._texts
            if text != self.rationale
        ]


def line_of(member: Member) -> Line:
    """A member with its own view's values and tags."""
    revision = member.version.revision
    shown = showing.presentation(revision, _reading(member))
    minor = revision.amount_minor
    return Line(
        id=member.id,
        subject=subject_of(revision, member.definition),
        amount=None if minor is None else Money(minor, revision.currency),
        tags=shown.tags if shown else (),
    )


def subject_of(revision: Revision, definition: ToolDefinition) -> Subject:
    """The arguments as their presenter reads them: labels, types, what is hidden."""
    return Subject(
        definition,
        in_order(revision.args, definition.arguments),
        labels=revision.reading.get("labels", {}),
        conceal=showing.concealer(revision),
    )


def _reading(member: Member) -> Mapping[str, Any] | None:
    return member.reading.reading if member.reading else None


def peek_of(loaded: Loaded, member: Member, at: datetime | None = None) -> Peek:
    """R1 to R3 of one member, and the mark that it was opened, by default just now."""
    revision = member.version.revision
    shown = showing.presentation(revision, _reading(member))
    subject = subject_of(revision, member.definition)
    told = {change.path for change in shown.changes} if shown else set()
    return Peek(
        id=member.id,
        url=reverse("reviews:request_detail", args=[member.id]),
        shown=shown,
        rest=[
            (subject.label(leaf.path), subject.cell(leaf))
            for leaf in subject.leaves
            if leaf.path not in told
        ],
        at=at or loaded.now,
        token=token_of(loaded, member, at or loaded.now),
    )


def token_of(loaded: Loaded, member: Member, at: datetime) -> str:
    return samples.token(
        batch=loaded.batch.pk,
        person=loaded.person.public_id,
        request=member.id,
        mark=loaded.marks[member.id],
        at=at,
    )


def peek(loaded: Loaded, request_id: str) -> Peek:
    """Raises NotFound when it is no member."""
    for member in loaded.members:
        if member.id == request_id:
            return peek_of(loaded, member)
    raise NotFound


# What came of it.
@dataclass(frozen=True, slots=True)
class Result:
    """One item of a decided batch: where it stands."""

    id: str
    url: str
    label: str
    amount: str
    state: State
    note: str


class ResultPage:
    """A batch that was decided, item by item."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.id = loaded.batch.pk
        self.url = reverse("reviews:batch", args=[self.id])
        self.definition = loaded.definition
        self.digest = loaded.batch.digest
        self.decided_at = loaded.batch.settled_at
        self.stops = loaded.batch.stop_at_failure
        self.halted = loaded.batch.halted_at is not None
        self.dissolved = loaded.batch.status == BatchStatus.DISSOLVED

    @property
    def title(self) -> tuple[Part, ...]:
        amounts = (line_amount(member) for member in self.loaded.members)
        total, largest = batch_table.total_of(amounts)
        return title(self.definition, len(self.loaded.members), total, largest)

    @cached_property
    def results(self) -> list[Result]:
        return [self._result(member) for member in self.loaded.members]

    def _result(self, member: Member) -> Result:
        execution = self._execution(member)
        state = states.of_request(
            member.request,
            execution,
            Tally(0, 1),
            cause=member.version.cause,
            now=self.loaded.now,
        )
        if self._not_run(execution):
            state = State("waiting", "Not run", icon="wait")
        amount = line_amount(member)
        return Result(
            id=member.id,
            url=reverse("reviews:request_detail", args=[member.id]),
            label=_label(member),
            amount=figure(amount) if amount else "",
            state=state,
            note=_note(execution),
        )

    def _execution(self, member: Member) -> Execution | None:
        return self.loaded.executions.get(member.request.proposal_id)

    def _not_run(self, execution: Execution | None) -> bool:
        queued = execution is not None and execution.status == ExecutionStatus.QUEUED
        return queued and self.halted

    @cached_property
    def figures(self) -> list[tuple[str, int]]:
        """How many stand where: `48 done, 1 failed`."""
        counts = Counter(_word(result) for result in self.results)
        return list(counts.items())

    @property
    def _may(self) -> bool:
        try:
            permissions.admitted_role(self.loaded.person, self.loaded.batch.queue_id)
        except DomainError:
            return False
        return True

    @property
    def recall(self) -> int:
        """How many a recall would still take back."""
        if not self._may:
            return 0
        return sum(
            member.request.status == RequestStatus.RECALLABLE
            and member.request.recall_until is not None
            and member.request.recall_until > self.loaded.now
            for member in self.loaded.members
        )

    @property
    def recall_until(self) -> datetime | None:
        times = [member.request.recall_until for member in self.loaded.members]
        return max((at for at in times if at), default=None)

    @property
    def recall_left(self) -> timedelta | None:
        until = self.recall_until
        return until - self.loaded.now if until else None

    @property
    def failed(self) -> int:
        if not self._may:
            return 0
        return sum(
            one.status == ExecutionStatus.FAILED
            and one.grant.expires_at > self.loaded.now
            for one in self.loaded.executions.values()
        )

    @property
    def waiting(self) -> int:
        """How many wait behind a failure."""
        if not self.halted or not self._may:
            return 0
        executions = self.loaded.executions.values()
        return sum(one.status == ExecutionStatus.QUEUED for one in executions)

    @property
    def over(self) -> bool:
        """Whether nothing moves any more without a person."""
        moving = {"recallable", "queued", "running", "authorized"}
        rests = not any(result.state.key in moving for result in self.results)
        return rests and not self.loaded.waits

    @property
    def etag(self) -> str:
        parts = [f"{one.id}{one.state.key}{one.state.word}" for one in self.results]
        said = "|".join([*parts, str(self.halted), str(self.recall), str(self.failed)])
        return alike.digest([{"said": said}]).removeprefix("sha256:")[:16]


def line_amount(member: Member) -> Money | None:
    revision = member.version.revision
    minor = revision.amount_minor
    return None if minor is None else Money(minor, revision.currency)


def _label(member: Member) -> str:
    """What tells one item from the others: the first argument that may differ."""
    subject = subject_of(member.version.revision, member.definition)
    batch = member.definition.batchable
    names = batch.varying if batch else []
    for leaf in subject.leaves:
        if leaf.name in names:
            return subject.cell(leaf).text
    return member.id


def _note(execution: Execution | None) -> str:
    """What the tool said of a failure: untrusted, to be printed as such."""
    if execution is None or execution.status == ExecutionStatus.SUCCEEDED:
        return ""
    return ": ".join(part for part in (execution.code, execution.detail) if part)


def _word(result: Result) -> str:
    return {
        "executed": "done",
        "waiting": "not run",
        "recallable": "approved",
        "queued": "approved",
        "authorized": "approved",
    }.get(result.state.key, result.state.key)
