"""Rows for what a run or an agent proposed: the effect, whether people were asked, the
times, and the outcome."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, OuterRef, Prefetch, QuerySet, Subquery
from django.urls import reverse

from journal import ids
from policies.choices import Tier
from policies.models import Person
from reviews.choices import (
    BY_LOOK_UP,
    BY_PERSON,
    REASONS,
    REVERSAL,
    ExecutionStatus,
    RequestStatus,
    Verdict,
)
from reviews.desk.components import retry as retrying
from reviews.desk.components import states, undo, visibility
from reviews.desk.components.states import State, Tally
from reviews.desk.components.undo import Undo
from reviews.effects import describe
from reviews.effects.describe import Brief
from reviews.models import ApprovalRequest, Decision, Execution, Proposal, Revision
from reviews.presenters.shapes import Part

_SHOWN = ("proposal", "number", "risk", "tier", "action_hash", "tool")

# Codes that Holdpoint sets, beside those of a refusal. Any other code comes from the
# tool or its agent.
OURS = {BY_PERSON, BY_LOOK_UP}


@dataclass(frozen=True, slots=True)
class Step:
    """One proposal. `way`: whether people were asked, or it was announced, allowed or
    blocked; `took`: how long its request was open; `why`: Holdpoint's words for a
    rejection, failure or refusal; `note`: the tool's or the agent's own words."""

    id: str
    at: datetime
    effect: tuple[Part, ...]
    risk: str
    tier: str
    tool: str
    state: State
    way: str
    took: timedelta | None
    ended_at: datetime | None
    why: str
    note: str
    url: str
    run: str
    run_url: str
    parent: str
    reversal: Undo
    retry: str  # URL at which this person may have a known failure retried, or ""


def read(person: Person, found: QuerySet[Proposal], now: datetime) -> list[Step]:
    """Build the rows of these proposals: five queries, one more for effects that are
    not cached, three where something can be undone, two where something can be retried.
    """
    rows: list[Any] = list(
        found.prefetch_related(
            Prefetch("revisions", _current(), to_attr="now"),
            Prefetch("request", _requests()),
            Prefetch(
                "request__versions", visibility.sealed_now(), to_attr="sealed_now"
            ),
            Prefetch("executions", Execution.objects.order_by("-queued_at")),
        )
    )
    briefs = describe.briefs({row.now[0].pk: row.now[0].action_hash for row in rows})
    undos = undo.undos(person, dict(_done(rows)), now)
    failed = retrying.able(person, _failed(rows), now)
    return [_step(row, briefs[row.now[0].pk], undos, failed, now) for row in rows]


def _newest(row: Any) -> Execution | None:
    """Return the newest execution that `list_proposal_rows` prefetched."""
    return next(iter(row.executions.all()), None)


def _failed(rows: Iterable[Any]) -> list[str]:
    """List failed executions without a request. With one, the request's page offers the
    retry."""
    newest = ((row, _newest(row)) for row in rows)
    return [
        one.pk
        for row, one in newest
        if one is not None
        and one.status == ExecutionStatus.FAILED
        and getattr(row, "request", None) is None
    ]


def _done(rows: Iterable[Any]) -> Iterator[tuple[str, undo.Effect]]:
    """List the executions that succeeded and are not reversals themselves."""
    for row in rows:
        execution = _newest(row)
        done = execution is not None and execution.status == ExecutionStatus.SUCCEEDED
        if execution is not None and done and row.source != REVERSAL:
            effect = undo.Effect(row.now[0].tool_id, row.agent, row.thread)
            yield execution.pk, effect


def _current() -> QuerySet[Revision]:
    return Revision.objects.filter(number=F("proposal__revision")).only(*_SHOWN)


def _requests() -> QuerySet[ApprovalRequest]:
    """Select the requests with their counted votes and the reason of the newest
    rejection."""
    votes = Decision.objects.filter(request=OuterRef("pk"), verdict=Verdict.REJECT)
    newest = Subquery(votes.order_by("-at").values("reason_code")[:1])
    return ApprovalRequest.objects.annotate(given=visibility.given(), rejected=newest)


def _step(
    proposal: Any,
    shown: Brief,
    undos: Mapping[str, Undo],
    failed: Collection[str],
    now: datetime,
) -> Step:
    """Build the row of a proposal that `list_proposal_rows` prefetched."""
    revision = proposal.now[0]
    request = getattr(proposal, "request", None)
    execution = _newest(proposal)
    pk = execution.pk if execution else ""
    return Step(
        id=proposal.pk,
        at=proposal.created_at,
        effect=shown.effect,
        risk=revision.risk,
        tier=request.tier if request else revision.tier,
        tool=proposal.tool_name,
        state=_state(proposal, request, execution, now),
        way=_way(proposal, request, revision),
        took=_took(request),
        ended_at=_ended_at(request, execution),
        why=_why(request, execution),
        note=_note(execution),
        url=reverse("reviews:request_detail", args=[request.pk]) if request else "",
        run=proposal.thread,
        run_url=reverse("agents:thread", args=[proposal.agent, proposal.thread]),
        parent=proposal.parent if ids.is_one(proposal.parent, "p") else "",
        reversal=undos.get(pk, Undo()),
        retry=reverse("reviews:effect_retry", args=[pk]) if pk in failed else "",
    )


def _way(proposal: Proposal, request: Any, revision: Revision) -> str:
    if proposal.blocked_by:
        return "Blocked"
    if request is not None:
        return "People asked"
    return "Announced" if revision.tier == Tier.NOTIFY else "Allowed without asking"


def _took(request: Any) -> timedelta | None:
    if request is None or request.settled_at is None:
        return None
    took: timedelta = request.settled_at - request.opened_at
    return took


def _ended_at(request: Any, execution: Execution | None) -> datetime | None:
    if execution is not None:
        return execution.finished_at
    ended: datetime | None = request.settled_at if request else None
    return ended


def _why(request: Any, execution: Execution | None) -> str:
    if execution is not None:
        return "" if _answered(execution) else _words(execution.code)
    settled = request is not None and request.status == RequestStatus.REJECTED
    return REASONS.get(request.rejected, "") if settled else ""


def _answered(execution: Execution) -> bool:
    return execution.status != ExecutionStatus.REFUSED and execution.code not in OURS


def _words(code: str) -> str:
    return code.replace("_", " ").capitalize()


def _note(execution: Execution | None) -> str:
    """Return the code and the words of the tool or its agent about a failure. This is
    foreign text."""
    if execution is None:
        return ""
    code = execution.code if _answered(execution) else ""
    return ": ".join(part for part in (code, execution.detail) if part)


def _state(
    proposal: Proposal, request: Any, execution: Execution | None, now: datetime
) -> State:
    if proposal.blocked_by:
        return State("blocked", f"Blocked: {proposal.blocked_by}", icon="void")
    if request is None:
        return states.of_execution(execution)
    sealed = request.sealed_now[0]
    tally = Tally(request.given, sum(step["required"] for step in sealed.steps))
    return states.of_request(request, execution, tally, cause=sealed.cause, now=now)


def counted(said: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    """Sort pairs of a status word and its count, the most frequent first."""
    return sorted(said, key=lambda one: (-one[1], one[0]))
