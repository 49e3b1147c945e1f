"""The result of a stop or pause: what it withdrew or kept, what had begun before it,
and what still runs in its scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple
from zlib import crc32

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from journal import clock
from journal.errors import NotFound
from journal.models import LogRecord
from policies import tools
from policies.models import Person
from reviews.choices import IN_FLIGHT, ExecutionStatus, RequestStatus, Scope, StopMode
from reviews.effects import describe
from reviews.models import (
    ApprovalRequest,
    Decision,
    Execution,
    Proposal,
    RequestVersion,
    Revision,
    Stop,
)
from reviews.presenters.shapes import SentencePart
from reviews.stops import scope as stop_work

from ..components import in_flight, switches, visibility
from ..components import undo as components_undo
from ..components.in_flight import (
    MOST_COUNTED,
    TO_PROPOSAL,
    format_count,
)
from ..components.switches import SwitchLine
from ..components.undo import UndoStatus

MAX_SHOWN = 50
# An action under way at a stop was authorised at most one execution window earlier,
# plus this: the lease of an attempt that began in the window's last second.
LONGEST_LEASE = timedelta(hours=1)
# How far back the page lists finished actions: an hour for most scopes, and for a
# reviewer everything that may have to be undone.
EARLIER_SPAN = timedelta(hours=1)
APPROVED_SPAN = timedelta(days=30)
# What became of each action: icon and words.
FATES = {
    "running": ("run", "Running: asked to stop, may finish"),
    "queued": ("wait", "Being cancelled"),
    "kept": ("pause", "Kept, does not run"),
    "cancelled": ("void", "Cancelled. It never ran."),
    "late": ("void", "Its execution window ended. It never ran."),
    "asked": ("back", "This vote no longer counts: another approval is needed"),
    "before": ("ok", "Already completed"),
    "unknown_before": ("ask", "Started before. Result unknown."),
    "withdrawn": ("void", "Withdrawn. No decision is needed."),
    "finished": ("ok", "Started before, and completed"),
    "failed": ("no", "Started before, and failed without effect"),
    "unknown": ("ask", "Started before. Result unknown."),
}


FATES_BEFORE = frozenset({"before", "unknown_before"})
FATES_DONE = frozenset({"before", "finished"})
NO_UNDO = UndoStatus()


@dataclass(frozen=True, slots=True)
class StopResultLine:
    """One action in the scope of the switch, and what became of it."""

    proposal: Proposal
    fate: str
    at: datetime | None
    effect: tuple[SentencePart, ...] = ()
    undo: str = ""
    sent: bool = False  # the effect is a webhook call to the tool's own service
    request: str = ""
    execution: str = ""
    undoing: UndoStatus = NO_UNDO

    @property
    def icon(self) -> str:
        return FATES[self.fate][0]

    @property
    def word(self) -> str:
        return FATES[self.fate][1]

    @property
    def began(self) -> bool:
        """Whether it can no longer be recalled, so that the way to undo it is worth
        showing."""
        return self.fate in {"running", "finished", "unknown"} | FATES_BEFORE

    @property
    def ran(self) -> bool:
        """Whether it happened or may have happened; only another action can undo it."""
        return self.fate != "running" and self.began


def list_affected_actions(row: Stop) -> Iterator[StopResultLine]:
    """List everything under way at the stop or since, running actions first.

    Each query walks an index from the time of the stop on.
    """
    within = stop_work.build_scope_condition(Scope(row.scope), row.key, TO_PROPOSAL)
    executions = Execution.objects.filter(within).select_related("proposal")
    if row.lifted_at is None:
        rows = in_flight.select_unfinished(Scope(row.scope), row.key)
        for execution in rows.select_related("proposal")[:MOST_COUNTED]:
            yield _build_line(execution, _find_unfinished_fate(execution, row))
    since, until = row.at - tools.load_longest_window() - LONGEST_LEASE, Q()
    if row.lifted_at:
        until = Q(queued_at__lt=row.lifted_at)
    ended = executions.filter(until).exclude(status__in=IN_FLIGHT)
    asked = ended.filter(proposal__request__settled_at__gte=since)
    unasked = ended.filter(
        proposal__request__isnull=True, proposal__created_at__gte=since
    )
    for execution in [*_list_newest(asked), *_list_newest(unasked)]:
        if fate := _find_ended_fate(execution, row):
            yield _build_line(execution, fate)
    yield from (
        _list_asked_again(row) if row.scope == Scope.REVIEWER else _list_withdrawn(row)
    )


def _list_asked_again(row: Stop) -> Iterator[StopResultLine]:
    """Requests in which this reviewer's vote became void and which others must
    answer."""
    voided = RequestVersion.objects.filter(cause="revoked", created_at__gte=row.at)
    if row.lifted_at:
        voided = voided.filter(created_at__lt=row.lifted_at)
    theirs = Decision.objects.filter(
        request=OuterRef("request"), reviewer__public_id=row.key, counts=True
    )
    versions = voided.filter(Exists(theirs)).select_related("request__proposal")
    for version in versions.order_by("-created_at")[:MOST_COUNTED]:
        yield StopResultLine(version.request.proposal, "asked", version.created_at)


def list_earlier_effects(
    scope: Scope, key: str, at: datetime
) -> Iterator[StopResultLine]:
    """List what had finished in this scope in the hour before `at`, newest first.

    For a reviewer: what they approved in the last 30 days. Unknown outcomes are
    included.
    """
    since = at - (APPROVED_SPAN if scope is Scope.REVIEWER else EARLIER_SPAN)
    within = stop_work.build_scope_condition(scope, key, TO_PROPOSAL)
    ended = Q(status=ExecutionStatus.SUCCEEDED, finished_at__range=(since, at))
    lost = Q(status=ExecutionStatus.UNKNOWN, unknown_at__range=(since, at))
    known_since = Q(status=ExecutionStatus.SUCCEEDED, unknown_at__range=(since, at))
    executions = Execution.objects.filter(within, ended | lost | known_since)
    executions = executions.select_related("proposal__request")
    asked = executions.filter(proposal__request__settled_at__gte=since - LONGEST_LEASE)
    unasked = executions.filter(
        proposal__request__isnull=True, proposal__created_at__gte=since - LONGEST_LEASE
    )
    for rows in (asked, unasked):
        for execution in _list_newest(rows):
            if (_find_end(execution) or since) < at:
                fate = "unknown_before" if execution.finished_at is None else "before"
                yield replace(
                    _build_line(execution, fate), request=_find_request_id(execution)
                )


def _find_request_id(execution: Any) -> str:
    request = getattr(execution.proposal, "request", None)
    return request.pk if request else ""


def _list_newest(executions: QuerySet[Execution]) -> list[Execution]:
    return list(executions.order_by("-queued_at")[:MOST_COUNTED])


def _find_end(execution: Execution) -> datetime | None:
    """When the execution ended, or when its last attempt became unknown.

    An outcome that was found out later does not move that time.
    """
    lost, claimed = execution.unknown_at, execution.claimed_at
    if lost is None or execution.status == ExecutionStatus.REFUSED:
        return execution.finished_at
    return execution.finished_at if claimed and claimed > lost else lost


def _find_unfinished_fate(execution: Execution, row: Stop) -> str:
    if execution.status == ExecutionStatus.CLAIMED:
        return "running"
    return "kept" if row.mode == StopMode.PAUSED else "queued"


def _find_ended_fate(execution: Execution, row: Stop) -> str:
    """The fate of an execution that ended; empty if it ended before the stop or after
    the switch was lifted."""
    ended = _find_end(execution)
    if ended is None or ended < row.at or (row.lifted_at and ended > row.lifted_at):
        return ""
    if execution.status == ExecutionStatus.REFUSED:
        return "late" if row.mode == StopMode.PAUSED else "cancelled"
    if execution.status == ExecutionStatus.SUCCEEDED:
        return "finished"
    return execution.status


def _build_line(execution: Execution, fate: str) -> StopResultLine:
    return StopResultLine(
        proposal=execution.proposal,
        fate=fate,
        at=_find_end(execution),
        execution=execution.pk,
    )


def _list_withdrawn(row: Stop) -> Iterator[StopResultLine]:
    """Requests that the stop itself withdrew, rather than their agent."""
    by_us = LogRecord.objects.filter(
        proposal=OuterRef("proposal"), actor_kind="system", actor_id="stop"
    )
    requests = ApprovalRequest.objects.filter(
        stop_work.build_scope_condition(Scope(row.scope), row.key, TO_PROPOSAL),
        Exists(by_us),
        status=RequestStatus.WITHDRAWN,
        settled_at__gte=row.at,
    ).select_related("proposal")
    if row.lifted_at:
        requests = requests.filter(settled_at__lt=row.lifted_at)
    for request in requests.order_by("-settled_at")[:MOST_COUNTED]:
        yield StopResultLine(request.proposal, "withdrawn", request.settled_at)


def list_readable_lines(
    person: Person, lines: list[StopResultLine]
) -> list[StopResultLine]:
    """List the lines that this person may read, with the effect of each and its
    reversal."""
    first = {line.proposal.pk: line for line in lines[:MAX_SHOWN]}
    visible = visibility.select_visible_proposals(person).filter(pk__in=first)
    facts = dict(_list_revisions(visible.values("pk")))
    briefs = describe.load_briefs_by_id(
        {revision.pk: revision.digest for revision in facts.values()}
    )
    readable = {pk: line for pk, line in first.items() if pk in facts}
    done = {
        line.execution: components_undo.ExecutedEffect(
            facts[pk].tool, line.proposal.agent, line.proposal.thread
        )
        for pk, line in readable.items()
        if line.fate in FATES_DONE
    }
    undone = (
        components_undo.build_undo_statuses(person, done, clock.now()) if done else {}
    )
    return [
        replace(
            _add_effect(line, briefs[facts[pk].pk], facts[pk].executor),
            undoing=undone.get(line.execution, NO_UNDO),
        )
        for pk, line in readable.items()
    ]


class _RevisionFacts(NamedTuple):
    pk: int
    digest: str
    executor: str
    tool: int | None


def _list_revisions(proposals: Any) -> Iterable[tuple[str, _RevisionFacts]]:
    revisions = Revision.objects.filter(
        proposal__in=proposals, number=F("proposal__revision")
    )
    kind = "tool__definition__executor__kind"
    names = ("proposal", "pk", "action_hash", kind, "tool")
    for proposal, *rest in revisions.values_list(*names):
        yield proposal, _RevisionFacts(*rest)


def _add_effect(
    line: StopResultLine, shown: describe.EffectBrief, executor: str
) -> StopResultLine:
    sent = line.began and executor == "webhook"
    return replace(line, effect=shown.effect, undo=shown.undo, sent=sent)


STATE_TITLES = {
    "became_stop": "Changed to a stop",
    "resumed": "Resumed",
    "paused": "Paused",
    "revoking": "Revoking…",
    "revoked": "Revoked",
    "stopping": "Stopping…",
    "stopped": "Stopped",
}


@dataclass(frozen=True)
class StoppedPage:
    """A switch and everything it affected. `waiting` counts the open requests in its
    scope."""

    switch: SwitchLine
    met: list[StopResultLine]
    shown: list[StopResultLine]
    waiting: int
    earlier: list[StopResultLine]  # what had finished before the switch
    told_earlier: list[StopResultLine]
    reviewer: bool = False
    became: int | None = None  # the stop that a pause was turned into

    @cached_property
    def fates(self) -> Counter[str]:
        """The number of affected actions by fate."""
        return Counter(line.fate for line in self.met)

    @property
    def over(self) -> bool:
        """Whether the switch itself will change nothing more."""
        if self.switch.lifted_at is not None:
            return True
        return not (self.fates["running"] or self._withdrawing)

    @property
    def _withdrawing(self) -> bool:
        if self.switch.paused:
            return False
        return bool(self.waiting or self.fates["queued"])

    @property
    def halted_at(self) -> datetime:
        """When the last affected action ended, or when the switch was lifted."""
        if self.switch.lifted_at is not None:
            return self.switch.lifted_at
        if self.switch.paused:
            return self.switch.at
        return max([self.switch.at, *(line.at for line in self.met if line.at)])

    @property
    def state(self) -> str:
        """The state as a code, a key of STATE_TITLES."""
        if self.became:
            return "became_stop"
        if self.switch.lifted_at is not None:
            return "resumed"
        if self.switch.paused:
            return "paused"
        if self.reviewer:
            return "revoked" if self.over else "revoking"
        return "stopped" if self.over else "stopping"

    @property
    def title(self) -> str:
        return STATE_TITLES[self.state]

    @property
    def icon(self) -> str:
        if self.switch.lifted_at is not None:
            return "stop" if self.became else "ok"
        if not self.over:
            return "run"
        return "pause" if self.switch.paused else "stop"

    @property
    def figures(self) -> str:
        """`2 cancelled, 1 had already finished`."""
        parts = list(self._kept() if self.switch.paused else self._taken_back())
        return ", ".join(parts)

    def _kept(self) -> Iterator[str]:
        yield "nothing was cancelled"
        if late := self.fates["late"]:
            yield f"{format_count(late)} ran out of time"
        if self.fates["kept"]:
            yield f"{self.fates['kept']} kept in the queue"
        if self.waiting:
            yield f"{format_count(self.waiting)} still pending"
        yield from self._begun()

    def _taken_back(self) -> Iterator[str]:
        cancelled, withdrawn = self.fates["cancelled"], self.fates["withdrawn"]
        if cancelled:
            yield f"{format_count(cancelled)} cancelled"
        if withdrawn:
            yield f"{format_count(withdrawn)} withdrawn"
        if self.fates["asked"]:
            yield f"{format_count(self.fates['asked'])} in need of another approval"
        if self.fates["queued"]:
            yield f"{format_count(self.fates['queued'])} still to cancel"
        if self.waiting:
            many = "" if self.waiting == 1 else "s"
            what = f"vote{many} still to revoke"
            if not self.reviewer:
                what = f"pending request{many} still to withdraw"
            yield f"{format_count(self.waiting)} {what}"
        if not (self._withdrawing or cancelled or withdrawn or self.fates["asked"]):
            yield "nothing to cancel"
        yield from self._begun()

    def _begun(self) -> Iterator[str]:
        if self.fates["running"]:
            yield f"{self.fates['running']} still running"
        if done := self.fates["finished"] + self.fates["failed"]:
            yield f"{done} had already started and finished"
        if self.fates["unknown"]:
            yield f"{self.fates['unknown']} with an unknown result"

    @property
    def before(self) -> str:
        """The heading of the list of what had finished before the switch."""
        lost = sum(line.fate == "unknown_before" for line in self.earlier)
        done = len(self.earlier) - lost
        span = "30 days" if self.reviewer else "hour"
        actions = "action" if done == 1 else "actions"
        what = f"{format_count(done)} {actions} completed in the previous {span}"
        return f"{what}, {lost} with an unknown result" if lost else what

    @property
    def hidden_earlier(self) -> int:
        return len(self.earlier) - len(self.told_earlier)

    @property
    def hidden(self) -> int:
        return len(self.met) - len(self.shown)

    @property
    def etag(self) -> str:
        fates = [f"{line.proposal.pk}{line.fate}" for line in self.met]
        state = [self.title, self.figures, self.switch.asked, *fates]
        return f"{crc32(repr(state).encode()):x}"


def build_stopped_page(person: Person, pk: int) -> StoppedPage:
    """Build the page of one switch. Raises NotFound for one that does not concern this
    person."""
    row = Stop.objects.filter(pk=pk).first()
    if row is None or not switches.filter_for_person(person, [row]):
        raise NotFound
    scope = Scope(row.scope)
    affected = list(list_affected_actions(row))
    earlier = list(list_earlier_effects(scope, row.key, row.at))
    return StoppedPage(
        switch=switches.build_switch_lines(person, [row])[0],
        met=affected,
        shown=list_readable_lines(person, affected),
        waiting=in_flight.count_waiting(scope, row.key),
        earlier=earlier,
        told_earlier=list_readable_lines(person, earlier),
        reviewer=scope is Scope.REVIEWER,
        became=_find_successor(row),
    )


def _find_successor(row: Stop) -> int | None:
    """The stop that replaced a pause: the operation ends the pause and begins the stop
    at the same time."""
    if row.lifted_at is None:
        return None
    successors = Stop.objects.filter(scope=row.scope, key=row.key, at=row.lifted_at)
    return successors.values_list("pk", flat=True).first()
