"""Executions and requests under way within a scope, and what a stop or a pause would do
to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Count, F, Q, QuerySet

from policies.models import Person
from reviews.choices import IN_FLIGHT, IN_FLIGHT_SQL, ExecutionStatus, Scope
from reviews.effects import describe
from reviews.models import IS_OPEN, ApprovalRequest, Execution
from reviews.presenters.shapes import SentencePart
from reviews.stops import scope as stop_work

from . import formatting, visibility

MOST_SHOWN = 20
MOST_COUNTED = 1000
TO_PROPOSAL = "proposal__"
ScopeTarget = tuple[Scope, str]
# SQL: a loose index scan visits one row an agent, however many requests it has.
_BUSY_AGENTS_SQL = f"""
WITH RECURSIVE asking (agent) AS (
  (SELECT agent FROM reviews_approvalrequest
   WHERE status = 'pending' AND NOT canary ORDER BY agent LIMIT 1)
  UNION ALL
  SELECT (SELECT agent FROM reviews_approvalrequest
          WHERE status = 'pending' AND NOT canary AND agent > asking.agent
          ORDER BY agent LIMIT 1)
  FROM asking WHERE asking.agent IS NOT NULL
)
SELECT agent FROM asking WHERE agent IS NOT NULL
UNION SELECT agent FROM reviews_approvalrequest WHERE status = 'recallable'
UNION SELECT p.agent FROM reviews_execution AS x
      JOIN reviews_proposal AS p ON p.id = x.proposal_id
      WHERE x.status IN ({IN_FLIGHT_SQL})
ORDER BY agent LIMIT %s
"""  # noqa: S608 constants
_WAITING_COUNTS_SQL = f"""
SELECT one.agent,
  (SELECT count(*) FROM (SELECT FROM reviews_approvalrequest AS r
   WHERE r.status = 'pending' AND r.canary_for IN ('', %s) AND r.agent = one.agent
   LIMIT {MOST_COUNTED + 1}) AS r)
  + (SELECT count(*) FROM reviews_approvalrequest AS r
     WHERE r.status = 'recallable' AND r.agent = one.agent)
FROM unnest(%s::text[]) AS one (agent)
"""  # noqa: S608 the parts are constants


@dataclass(frozen=True, slots=True)
class InFlightCounts:
    """Executions queued or running, and requests that wait for people."""

    queued: int = 0
    running: int = 0
    waiting: int = 0

    @property
    def any(self) -> bool:
        return bool(self.queued or self.running or self.waiting)

    @property
    def if_stopped(self) -> str:
        return _join_counts(
            (self.queued, "queued: will be cancelled"),
            (self.running, "running: asked to stop, may finish"),
            (self.waiting, f"{_format_waiting(self.waiting)}: will be withdrawn"),
        )

    @property
    def if_paused(self) -> str:
        return _join_counts(
            (self.queued, "queued: kept, will not run"),
            (self.running, "running: may finish"),
            (self.waiting, f"{_format_waiting(self.waiting)}: will stay open"),
        )


def _join_counts(*parts: tuple[int, str]) -> str:
    phrases = (f"{format_count(count)} {what}" for count, what in parts if count)
    return " · ".join(phrases) or "Nothing is in progress."


def _format_waiting(count: int) -> str:
    return "pending request" if count == 1 else "pending requests"


def format_count(count: int) -> str:
    """A count as text; counting ends at `MOST_COUNTED`."""
    return f"{MOST_COUNTED}+" if count > MOST_COUNTED else str(count)


@dataclass(frozen=True, slots=True)
class InFlightAction:
    """One unfinished execution as a page lists it."""

    id: str
    effect: tuple[SentencePart, ...]
    undo: str  # how it can be undone, as the tool declares it
    tool: str
    agent: str
    thread: str
    running: bool
    since: datetime
    attempt: str  # empty for the first
    by_agent: bool

    @property
    def run(self) -> list[str]:
        """Agent and thread, as the arguments of the run's address."""
        return [self.agent, self.thread]


def count_in_flight(
    targets: Sequence[ScopeTarget], me: str = ""
) -> dict[ScopeTarget, InFlightCounts]:
    """What is under way, by scope, as the person with the public id `me` may see it.

    One query counts the executions, one the requests of agents, and one more each other
    scope. Requests are counted up to `MOST_COUNTED`.
    """
    counted = _count_executions(targets)
    waits = _count_waiting_by_agent(
        [key for scope, key in targets if scope is Scope.AGENT], me
    )
    return {
        (scope, key): InFlightCounts(
            queued=counted[f"{n}_queued"],
            running=counted[f"{n}_claimed"],
            waiting=waits[key]
            if scope is Scope.AGENT
            else count_waiting(scope, key, me),
        )
        for n, (scope, key) in enumerate(targets)
    }


def _count_executions(targets: Sequence[ScopeTarget]) -> dict[str, int]:
    counts = {
        f"{n}_{status}": Count(
            "pk",
            filter=Q(status=status)
            & stop_work.build_scope_condition(*target, TO_PROPOSAL),
        )
        for n, target in enumerate(targets)
        for status in IN_FLIGHT
    }
    executions = Execution.objects.filter(status__in=IN_FLIGHT)
    return executions.aggregate(**counts) if counts else {}


def count_running(targets: Sequence[ScopeTarget]) -> dict[ScopeTarget, int]:
    """How many executions run now, by scope, in one query."""
    counts = {
        f"n{n}": Count(
            "pk", filter=stop_work.build_scope_condition(*target, TO_PROPOSAL)
        )
        for n, target in enumerate(targets)
    }
    executions = Execution.objects.filter(status=ExecutionStatus.CLAIMED)
    counted = executions.aggregate(**counts) if counts else {}
    return {target: counted[f"n{n}"] for n, target in enumerate(targets)}


def _count_waiting_by_agent(agents: list[str], me: str) -> dict[str, int]:
    if not agents:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_WAITING_COUNTS_SQL, [me, agents])
        return dict(cursor.fetchall())


def count_waiting(scope: Scope, key: str, me: str = "") -> int:
    """How many requests wait for people within a scope, up to `MOST_COUNTED` + 1, with
    the canary of the person with the public id `me`."""
    requests = ApprovalRequest.with_canaries.filter(
        stop_work.build_scope_condition(scope, key, TO_PROPOSAL),
        IS_OPEN,
        canary_for__in=["", me],
    )
    return requests.order_by()[: MOST_COUNTED + 1].count()


def list_busy_agents(most: int) -> list[str]:
    """At most `most` agents with something under way, by name."""
    with connection.cursor() as cursor:
        cursor.execute(_BUSY_AGENTS_SQL, [most])
        return [agent for (agent,) in cursor.fetchall()]


def select_unfinished(scope: Scope, key: str) -> QuerySet[Execution]:
    """Unfinished executions within a scope, running ones first."""
    executions = Execution.objects.filter(
        stop_work.build_scope_condition(scope, key, TO_PROPOSAL), status__in=IN_FLIGHT
    )
    return executions.order_by("status", "queued_at")  # "claimed" before "queued"


def list_actions(person: Person, scope: Scope, key: str) -> list[InFlightAction]:
    """The unfinished executions that this person may see, at most `MOST_SHOWN`.

    Two queries, and one for revisions that are not cached.
    """
    proposals = visibility.select_visible_proposals(person).values("pk")
    rows: list[Any] = list(
        select_unfinished(scope, key)
        .filter(proposal__in=proposals)
        .select_related("proposal")
        .annotate(revision=F("grant__revision"), hash=F("grant__action_hash"))[
            :MOST_SHOWN
        ]
    )
    briefs = describe.load_briefs_by_id({row.revision: row.hash for row in rows})
    return [_build_action(row, briefs[row.revision]) for row in rows]


def _build_action(row: Any, shown: describe.EffectBrief) -> InFlightAction:
    """From an execution as `list_actions` annotates it."""
    running = row.status == ExecutionStatus.CLAIMED
    return InFlightAction(
        id=row.pk,
        effect=shown.effect,
        undo=shown.undo,
        tool=row.proposal.tool_name,
        agent=row.proposal.agent,
        thread=row.proposal.thread,
        running=running,
        since=row.claimed_at if running else row.queued_at,
        attempt=formatting.format_repeat(row, shown.attempts),
        by_agent=row.by_agent,
    )
