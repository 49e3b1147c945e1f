"""What a run or an agent proposed, one line each: how far it was asked about, when, and
what came of it."""

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

# Codes of ours, beside those of a refusal; any other is the tool's or its agent's.
OURS = {BY_PERSON, BY_LOOK_UP}


@dataclass(frozen=True, slots=True)
class Step:
    """One proposal. `way`: who was asked; `took`: how long people had it; `why`: what
    was said of a rejection, a failure or a refusal, and `note` the tool's own words."""

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
    retry: str  # where this person may have a known failure tried again


def read(person: Person, found: QuerySet[Proposal], now: datetime) -> list[Step]:
    """The proposals as lines, in five queries, one for effects that are new, three
    where something can be undone, and two where something can be tried again."""
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
    """Its last execution, as `read` prefetches them."""
    return next(iter(row.executions.all()), None)


def _failed(rows: Iterable[Any]) -> list[str]:
    """What failed and nobody was asked about: of another its request's page knows."""
    newest = ((row, _newest(row)) for row in rows)
    return [
        one.pk
        for row, one in newest
        if one is not None
        and one.status == ExecutionStatus.FAILED
        and getattr(row, "request", None) is None
    ]


def _done(rows: Iterable[Any]) -> Iterator[tuple[str, undo.Effect]]:
    """What has happened and undid nothing."""
    for row in rows:
        execution = _newest(row)
        done = execution is not None and execution.status == ExecutionStatus.SUCCEEDED
        if execution is not None and done and row.source != REVERSAL:
            effect = undo.Effect(row.now[0].tool_id, row.agent, row.thread)
            yield execution.pk, effect


def _current() -> QuerySet[Revision]:
    return Revision.objects.filter(number=F("proposal__revision")).only(*_SHOWN)


def _requests() -> QuerySet[ApprovalRequest]:
    """With what counts for them, and why the last who rejected one did."""
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
    """From a proposal as `read` prefetches it."""
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
    """What a tool or its agent says of a failure, its code too: foreign text."""
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
    """Outcomes by how often, each in the agent's word for it."""
    return sorted(said, key=lambda one: (-one[1], one[0]))
