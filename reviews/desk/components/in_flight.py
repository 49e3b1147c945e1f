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
from reviews.choices import OPEN, ExecutionStatus, Scope
from reviews.effects import describe
from reviews.models import ApprovalRequest, Execution
from reviews.presenters.shapes import Part
from reviews.stops import scope as stop_work

from . import formatting, visibility

UNFINISHED = (ExecutionStatus.QUEUED, ExecutionStatus.CLAIMED)
MOST_SHOWN = 20
MOST_COUNTED = 1000
TO_PROPOSAL = "proposal__"
Target = tuple[Scope, str]
# SQL: a loose index scan visits one row an agent, however many requests it has.
_BUSY = """
WITH RECURSIVE asking (agent) AS (
  (SELECT agent FROM reviews_approvalrequest
   WHERE status = 'pending' ORDER BY agent LIMIT 1)
  UNION ALL
  SELECT (SELECT agent FROM reviews_approvalrequest
          WHERE status = 'pending' AND agent > asking.agent ORDER BY agent LIMIT 1)
  FROM asking WHERE asking.agent IS NOT NULL
)
SELECT agent FROM asking WHERE agent IS NOT NULL
UNION SELECT agent FROM reviews_approvalrequest WHERE status = 'recallable'
UNION SELECT p.agent FROM reviews_execution AS x
      JOIN reviews_proposal AS p ON p.id = x.proposal_id
      WHERE x.status IN ('queued', 'claimed')
ORDER BY agent LIMIT %s
"""
_WAITING = f"""
SELECT one.agent,
  (SELECT count(*) FROM (SELECT FROM reviews_approvalrequest AS r
   WHERE r.status = 'pending' AND r.agent = one.agent
   LIMIT {MOST_COUNTED + 1}) AS r)
  + (SELECT count(*) FROM reviews_approvalrequest AS r
     WHERE r.status = 'recallable' AND r.agent = one.agent)
FROM unnest(%s::text[]) AS one (agent)
"""  # noqa: S608 the parts are constants


@dataclass(frozen=True, slots=True)
class Load:
    """How many executions are queued or running, and how many requests wait for
    people."""

    queued: int = 0
    running: int = 0
    waiting: int = 0

    @property
    def any(self) -> bool:
        """Whether anything is under way."""
        return bool(self.queued or self.running or self.waiting)

    @property
    def if_stopped(self) -> str:
        """What a stop would do, in words."""
        return _listed(
            (self.queued, "queued: cancelled"),
            (self.running, "running: asked to halt, may finish"),
            (self.waiting, f"{_requests(self.waiting)}: withdrawn"),
        )

    @property
    def if_paused(self) -> str:
        """What a pause would do, in words."""
        return _listed(
            (self.queued, "queued: kept, does not run"),
            (self.running, "running: may finish"),
            (self.waiting, f"{_requests(self.waiting)}: stays open"),
        )


def _listed(*parts: tuple[int, str]) -> str:
    said = (f"{capped(count)} {what}" for count, what in parts if count)
    return " · ".join(said) or "Nothing is under way."


def _requests(count: int) -> str:
    return f"{'request' if count == 1 else 'requests'} waiting for people"


def capped(count: int) -> str:
    """A count as text; counting ends at `MOST_COUNTED`."""
    return f"{MOST_COUNTED}+" if count > MOST_COUNTED else str(count)


@dataclass(frozen=True, slots=True)
class Action:
    """One unfinished execution as a page lists it."""

    id: str
    effect: tuple[Part, ...]
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


def loads(targets: Sequence[Target]) -> dict[Target, Load]:
    """What is under way, by scope.

    One query counts the executions, one the requests of agents, and one more each other
    scope. Requests are counted up to `MOST_COUNTED`.
    """
    counted = _executions(targets)
    waits = _waiting_of([key for scope, key in targets if scope is Scope.AGENT])
    return {
        one: Load(
            queued=counted[f"{n}_queued"],
            running=counted[f"{n}_claimed"],
            waiting=waits[one[1]] if one[0] is Scope.AGENT else waiting(*one),
        )
        for n, one in enumerate(targets)
    }


def _executions(targets: Sequence[Target]) -> dict[str, int]:
    counts = {
        f"{n}_{status}": Count(
            "pk", filter=Q(status=status) & stop_work.within(*one, TO_PROPOSAL)
        )
        for n, one in enumerate(targets)
        for status in UNFINISHED
    }
    found = Execution.objects.filter(status__in=UNFINISHED)
    return found.aggregate(**counts) if counts else {}


def running(targets: Sequence[Target]) -> dict[Target, int]:
    """How many executions run now, by scope, in one query."""
    counts = {
        f"n{n}": Count("pk", filter=stop_work.within(*one, TO_PROPOSAL))
        for n, one in enumerate(targets)
    }
    found = Execution.objects.filter(status=ExecutionStatus.CLAIMED)
    counted = found.aggregate(**counts) if counts else {}
    return {one: counted[f"n{n}"] for n, one in enumerate(targets)}


def _waiting_of(agents: list[str]) -> dict[str, int]:
    if not agents:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [agents])
        return dict(cursor.fetchall())


def waiting(scope: Scope, key: str) -> int:
    """How many requests wait for people within a scope, up to `MOST_COUNTED` + 1."""
    found = ApprovalRequest.objects.filter(
        stop_work.within(scope, key, TO_PROPOSAL), status__in=OPEN
    )
    return found.order_by()[: MOST_COUNTED + 1].count()


def agents(most: int) -> list[str]:
    """At most `most` agents with something under way, by name."""
    with connection.cursor() as cursor:
        cursor.execute(_BUSY, [most])
        return [agent for (agent,) in cursor.fetchall()]


def unfinished(scope: Scope, key: str) -> QuerySet[Execution]:
    """Unfinished executions within a scope, running ones first."""
    found = Execution.objects.filter(
        stop_work.within(scope, key, TO_PROPOSAL), status__in=UNFINISHED
    )
    return found.order_by("status", "queued_at")  # "claimed" before "queued"


def actions(person: Person, scope: Scope, key: str) -> list[Action]:
    """The unfinished executions that this person may see, at most `MOST_SHOWN`.

    Two queries, and one for revisions that are not cached.
    """
    mine = visibility.proposals(person).values("pk")
    rows: list[Any] = list(
        unfinished(scope, key)
        .filter(proposal__in=mine)
        .select_related("proposal")
        .annotate(revision=F("grant__revision"), hash=F("grant__action_hash"))[
            :MOST_SHOWN
        ]
    )
    briefs = describe.briefs({row.revision: row.hash for row in rows})
    return [_action(row, briefs[row.revision]) for row in rows]


def _action(row: Any, shown: describe.Brief) -> Action:
    """From an execution as `list_actions` annotates it."""
    running = row.status == ExecutionStatus.CLAIMED
    return Action(
        id=row.pk,
        effect=shown.effect,
        undo=shown.undo,
        tool=row.proposal.tool_name,
        agent=row.proposal.agent,
        thread=row.proposal.thread,
        running=running,
        since=row.claimed_at if running else row.queued_at,
        attempt=formatting.again(row, shown.attempts),
        by_agent=row.by_agent,
    )
