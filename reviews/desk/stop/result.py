"""What a switch met: executions and requests that were under way when it was thrown,
and what became of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.urls import reverse

from journal import clock
from journal.models import LogRecord
from policies import tools
from policies.models import Person
from reviews.choices import ExecutionStatus, RequestStatus, Scope, StopMode
from reviews.desk.components import in_flight, visibility
from reviews.desk.components import undo as components_undo
from reviews.desk.components.in_flight import MOST_COUNTED, TO_PROPOSAL, UNFINISHED
from reviews.desk.components.undo import Undo
from reviews.effects import describe
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    RequestVersion,
    Revision,
    Stop,
)
from reviews.presenters.shapes import Part
from reviews.stops import scope as stop_work

MOST_SHOWN = 50
# What was under way at a stop was authorised at most a window before it, and this long:
# the lease of an attempt that began in the window's last second.
BEFORE = timedelta(hours=1)
# How far back one looks for what had finished before it: what a person in a hurry may
# have come for, and of a reviewer all that may have to be undone.
EARLIER = timedelta(hours=1)
APPROVED = timedelta(days=30)
# What became of each: sign, words, and whether it is over.
FATES = {
    "running": ("run", "Running: asked to halt, may finish"),
    "queued": ("wait", "Being cancelled"),
    "kept": ("pause", "Kept, does not run"),
    "cancelled": ("void", "Cancelled. It never ran."),
    "late": ("void", "Its time to run was over. It never ran."),
    "asked": ("back", "Asked again of others: this vote is void"),
    "before": ("ok", "Had finished before"),
    "unknown_before": ("ask", "Had begun before. Nobody knows whether it happened."),
    "withdrawn": ("void", "Withdrawn. Nobody is asked any more."),
    "finished": ("ok", "Had begun before, and finished"),
    "failed": ("no", "Had begun before, and failed without effect"),
    "unknown": ("ask", "Had begun before. Nobody knows whether it happened."),
}


BEFORE_IT = frozenset({"before", "unknown_before"})
DONE = frozenset({"before", "finished"})
NOTHING = Undo()


@dataclass(frozen=True, slots=True)
class Line:
    """One action that the switch met."""

    proposal: str
    tool: str
    run: tuple[str, str]
    fate: str
    at: datetime | None
    effect: tuple[Part, ...] = ()
    undo: str = ""
    sent: bool = False  # its effect is a request to the tool's own service
    request: str = ""
    execution: str = ""
    undoing: Undo = NOTHING

    @property
    def icon(self) -> str:
        return FATES[self.fate][0]

    @property
    def word(self) -> str:
        return FATES[self.fate][1]

    @property
    def url(self) -> str:
        return reverse("agents:thread", args=self.run)

    @property
    def began(self) -> bool:
        """Too late to be called back: what undoes it is worth saying."""
        return self.fate in {"running", "finished", "unknown"} | BEFORE_IT

    @property
    def ran(self) -> bool:
        """It happened or may have: to be undone only by another action."""
        return self.fate != "running" and self.began

    @property
    def request_url(self) -> str:
        return reverse("reviews:request_detail", args=[self.request])


def met(row: Stop) -> Iterator[Line]:
    """Everything under way then or since, what still runs first. Each of the queries
    walks an index from the moment of the stop on."""
    within = stop_work.within(Scope(row.scope), row.key, TO_PROPOSAL)
    found = Execution.objects.filter(within).select_related("proposal")
    if row.lifted_at is None:
        rows = in_flight.unfinished(Scope(row.scope), row.key)
        for one in rows.select_related("proposal")[:MOST_COUNTED]:
            yield _line(one, _unfinished(one, row))
    since, until = row.at - tools.longest_window() - BEFORE, Q()
    if row.lifted_at:
        until = Q(queued_at__lt=row.lifted_at)
    ended = found.filter(until).exclude(status__in=UNFINISHED)
    asked = ended.filter(proposal__request__settled_at__gte=since)
    unasked = ended.filter(
        proposal__request__isnull=True, proposal__created_at__gte=since
    )
    for one in [*_newest(asked), *_newest(unasked)]:
        if fate := _ended(one, row):
            yield _line(one, fate)
    yield from _asked_again(row) if row.scope == Scope.REVIEWER else _withdrawn(row)


def _asked_again(row: Stop) -> Iterator[Line]:
    """Requests whose vote of this reviewer was voided, and that others answer now."""
    voided = RequestVersion.objects.filter(cause="revoked", created_at__gte=row.at)
    if row.lifted_at:
        voided = voided.filter(created_at__lt=row.lifted_at)
    theirs = Decision.objects.filter(
        request=OuterRef("request"), reviewer__public_id=row.key, counts=True
    )
    found = voided.filter(Exists(theirs)).select_related("request__proposal")
    for one in found.order_by("-created_at")[:MOST_COUNTED]:
        proposal = one.request.proposal
        run = (proposal.agent, proposal.thread)
        yield Line(proposal.pk, proposal.tool_name, run, "asked", one.created_at)


def earlier(scope: Scope, key: str, at: datetime) -> Iterator[Line]:
    """What had finished within it in the hour before, newest first; of a reviewer what
    they approved in a month. What nobody knows of stands among it."""
    since = at - (APPROVED if scope is Scope.REVIEWER else EARLIER)
    within = stop_work.within(scope, key, TO_PROPOSAL)
    ended = Q(status=ExecutionStatus.SUCCEEDED, finished_at__range=(since, at))
    lost = Q(status=ExecutionStatus.UNKNOWN, unknown_at__range=(since, at))
    known_since = Q(status=ExecutionStatus.SUCCEEDED, unknown_at__range=(since, at))
    found = Execution.objects.filter(within, ended | lost | known_since)
    found = found.select_related("proposal__request")
    asked = found.filter(proposal__request__settled_at__gte=since - BEFORE)
    unasked = found.filter(
        proposal__request__isnull=True, proposal__created_at__gte=since - BEFORE
    )
    for rows in (asked, unasked):
        for one in _newest(rows):
            if (_over_at(one) or since) < at:
                fate = "unknown_before" if one.finished_at is None else "before"
                yield replace(_line(one, fate), request=_request_of(one))


def _request_of(execution: Any) -> str:
    request = getattr(execution.proposal, "request", None)
    return request.pk if request else ""


def _newest(found: QuerySet[Execution]) -> list[Execution]:
    return list(found.order_by("-queued_at")[:MOST_COUNTED])


def _over_at(execution: Execution) -> datetime | None:
    """When it ended, or when nobody knew of its last attempt any more: what was found
    out of that later ended nothing."""
    lost, claimed = execution.unknown_at, execution.claimed_at
    if lost is None or execution.status == ExecutionStatus.REFUSED:
        return execution.finished_at
    return execution.finished_at if claimed and claimed > lost else lost


def _unfinished(execution: Execution, row: Stop) -> str:
    if execution.status == ExecutionStatus.CLAIMED:
        return "running"
    return "kept" if row.mode == StopMode.PAUSED else "queued"


def _ended(execution: Execution, row: Stop) -> str:
    """What became of it, if that was not before the stop."""
    ended = _over_at(execution)
    if ended is None or ended < row.at or (row.lifted_at and ended > row.lifted_at):
        return ""
    refused = "late" if row.mode == StopMode.PAUSED else "cancelled"
    return {
        ExecutionStatus.SUCCEEDED: "finished",
        ExecutionStatus.FAILED: "failed",
        ExecutionStatus.UNKNOWN: "unknown",
        ExecutionStatus.REFUSED: refused,
    }[ExecutionStatus(execution.status)]


def _line(execution: Execution, fate: str) -> Line:
    proposal = execution.proposal
    return Line(
        proposal=proposal.pk,
        tool=proposal.tool_name,
        run=(proposal.agent, proposal.thread),
        fate=fate,
        at=_over_at(execution),
        execution=execution.pk,
    )


def _withdrawn(row: Stop) -> Iterator[Line]:
    """Requests that the stop itself ended, not their agent."""
    by_us = LogRecord.objects.filter(
        proposal=OuterRef("proposal"), actor_kind="system", actor_id="stop"
    )
    found = ApprovalRequest.objects.filter(
        stop_work.within(Scope(row.scope), row.key, TO_PROPOSAL),
        Exists(by_us),
        status=RequestStatus.WITHDRAWN,
        settled_at__gte=row.at,
    ).select_related("proposal")
    if row.lifted_at:
        found = found.filter(settled_at__lt=row.lifted_at)
    for one in found.order_by("-settled_at")[:MOST_COUNTED]:
        proposal = one.proposal
        run = (proposal.agent, proposal.thread)
        yield Line(proposal.pk, proposal.tool_name, run, "withdrawn", one.settled_at)


def told(person: Person, lines: list[Line]) -> list[Line]:
    """The lines that this person may read, with what each would do."""
    first = {line.proposal: line for line in lines[:MOST_SHOWN]}
    mine = visibility.proposals(person).filter(pk__in=first)
    facts = dict(_revisions(mine.values("pk")))
    briefs = describe.briefs({one.pk: one.digest for one in facts.values()})
    mine_first = {p: line for p, line in first.items() if p in facts}
    done = {
        line.execution: components_undo.Effect(facts[proposal].tool, *line.run)
        for proposal, line in mine_first.items()
        if line.fate in DONE
    }
    undone = components_undo.undos(person, done, clock.now()) if done else {}
    return [
        replace(
            _described(line, briefs[facts[proposal].pk], facts[proposal].executor),
            undoing=undone.get(line.execution, NOTHING),
        )
        for proposal, line in mine_first.items()
    ]


class _Facts(NamedTuple):
    """Of one proposal's revision: what its line is drawn from."""

    pk: int
    digest: str
    executor: str
    tool: int | None


def _revisions(proposals: Any) -> Iterable[tuple[str, _Facts]]:
    found = Revision.objects.filter(
        proposal__in=proposals, number=F("proposal__revision")
    )
    kind = "tool__definition__executor__kind"
    names = ("proposal", "pk", "action_hash", kind, "tool")
    for proposal, *rest in found.values_list(*names):
        yield proposal, _Facts(*rest)


def _described(line: Line, shown: describe.Brief, executor: str) -> Line:
    sent = line.began and executor == "webhook"
    return replace(line, effect=shown.effect, undo=shown.undo, sent=sent)
