"""The runs of all agents, newest first: for people who read every queue, and for owners
those of their own agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, OuterRef, Q, QuerySet

from agents.choices import ThreadStatus
from agents.models import Agent, Thread
from journal.errors import NotPermitted
from policies.models import Person
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.models import IS_OPEN, Stop
from reviews.roles import Permission
from reviews.stops import stops

from ..components import visibility
from . import activity
from .agents import RunRow, build_run_row
from .run_summaries import load_run_summaries

PAGE = 50


@dataclass(frozen=True, slots=True)
class RunsPage:
    """`agents` are the choices of the filter; `before` begins the next page, 0 on the
    last one."""

    runs: Sequence[RunRow]
    agents: Sequence[Agent]
    agent: str
    unfinished: bool
    before: int

    @property
    def older_url(self) -> str:
        """The address of the next page."""
        state = "unfinished" if self.unfinished else ""
        sent = {"agent": self.agent, "state": state, "before": self.before}
        return f"?{urlencode(sent)}"


def build_runs_page(
    person: Person, agent: str, before: int, now: datetime, *, unfinished: bool
) -> RunsPage:
    """One page of runs: of this agent unless it is "", and only unfinished ones where
    asked. `before` is the key of the last run of the page before. Raises NotPermitted
    for people who neither read every queue nor own an agent."""
    agents = list(_select_agents(person))
    if not agents and not permissions.has_permission(person, Permission.SEE_ALL):
        raise NotPermitted("You own no agent, so there are no runs for you to read.")
    runs = Thread.objects.filter(agent__in=[row.pk for row in agents])
    if agent:
        runs = runs.filter(agent__slug=agent)
    if unfinished:
        runs = runs.filter(status=ThreadStatus.RUNNING)
    if before:
        runs = runs.filter(pk__lt=before)
    ordered = runs.select_related("agent").order_by("-pk")
    rows = list(
        activity.annotate_goes_on(ordered, OuterRef("agent__slug"), now)[: PAGE + 1]
    )
    shown = rows[:PAGE]
    return RunsPage(
        _describe_runs(person, shown),
        agents,
        agent,
        unfinished,
        shown[-1].pk if len(rows) > PAGE else 0,
    )


def _select_agents(person: Person) -> QuerySet[Agent]:
    agents = Agent.objects.order_by("slug")
    if permissions.has_permission(person, Permission.SEE_ALL):
        return agents
    return agents.filter(owner=person)


def _describe_runs(person: Person, runs: Sequence[Any]) -> list[RunRow]:
    modes, waiting = _load_modes(runs), _count_waiting(person, runs)
    summaries = load_run_summaries(person, runs)
    keys = [(run, (run.agent.slug, run.name)) for run in runs]
    return [
        build_run_row(run, waiting.get(key, 0), modes[key], summaries[key])
        for run, key in keys
    ]


def _load_modes(runs: Iterable[Thread]) -> dict[tuple[str, str], set[StopMode]]:
    """The modes in force over each run, by agent and name: one query."""
    keys = {(run.agent.slug, run.name) for run in runs}
    threads = {stops.build_thread_key(*key): key for key in keys}
    over = Q(scope=Scope.EVERYTHING) | Q(scope=Scope.THREAD, key__in=list(threads))
    over |= Q(scope=Scope.AGENT, key__in={slug for slug, _ in keys})
    modes: dict[tuple[str, str], set[StopMode]] = {key: set() for key in keys}
    for row in Stop.objects.filter(over, lifted_at__isnull=True):
        for key in keys:
            everything = row.scope == Scope.EVERYTHING
            if everything or row.key in {key[0], stops.build_thread_key(*key)}:
                modes[key].add(StopMode(row.mode))
    return modes


def _count_waiting(
    person: Person, runs: Sequence[Thread]
) -> dict[tuple[str, str], int]:
    """How many open requests of each run the person may see."""
    requests = visibility.select_visible_requests(person).filter(
        IS_OPEN,
        agent__in={run.agent.slug for run in runs},
        proposal__thread__in=[run.name for run in runs],
    )
    counted = requests.values_list("agent", "proposal__thread")
    rows = counted.annotate(n=Count("pk")).order_by()
    return {(agent, thread): n for agent, thread, n in rows}
