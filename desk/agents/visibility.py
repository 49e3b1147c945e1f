"""Which agents a person may see, and the rows of the agents' list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from agents.choices import SettingsStatus, ThreadStatus
from agents.models import Agent, SettingsChange
from journal.clock import format_time
from journal.errors import NotFound
from policies.models import Person
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.models import IS_OPEN, Stop
from reviews.roles import Permission

from ..components import visibility
from . import figures
from .figures import AgentFigures


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent in the list, annotated with `live`, the number of its unfinished runs.
    `waiting` counts its open requests that this person may see."""

    agent: Agent
    state: str
    icon: str
    waiting: int


def select_visible_agents(person: Person) -> QuerySet[Agent]:
    """Select the person's own agents and those whose proposals they may see; all of
    them when their role allows it. Annotates `live`."""
    live = Count("threads", filter=Q(threads__status=ThreadStatus.RUNNING))
    agents = Agent.objects.select_related("owner").annotate(live=live)
    if permissions.has_permission(person, Permission.SEE_ALL):
        return agents
    seen = visibility.select_visible_proposals(person).filter(agent=OuterRef("slug"))
    return agents.filter(Q(owner=person) | Exists(seen))


@dataclass(frozen=True, slots=True)
class AgentLine:
    """One agent in the list with the figures of its last 24 hours. The agent is
    annotated with `changing`: whether a change of its settings waits for an answer."""

    row: AgentRow
    day: AgentFigures


def list_agents(person: Person, now: datetime) -> list[AgentLine]:
    """List every agent that this person may see, those with problems first, then by
    name, in six queries."""
    changes = SettingsChange.objects.filter(
        agent=OuterRef("pk"), status=SettingsStatus.PROPOSED
    )
    agents = list(
        select_visible_agents(person)
        .annotate(
            last_use=figures.select_last_use(),
            changing=Exists(changes),
        )
        .order_by("name")
    )
    waiting = dict(
        visibility.select_visible_requests(person)
        .filter(IS_OPEN)
        .values_list("agent")
        .annotate(n=Count("pk"))
    )
    switched = _load_switches()
    days = figures.load_figures(person, agents, switched, now)
    lines = [
        AgentLine(
            build_agent_row(agent, waiting.get(agent.slug, 0), switched),
            days[agent.slug],
        )
        for agent in agents
    ]
    return sorted(lines, key=lambda line: line.day.severity)


def _load_switches() -> Mapping[str, StopMode]:
    """Return the strictest mode in force by agent slug; "" is the switch over
    everything."""
    rows = Stop.objects.filter(
        scope__in=[Scope.AGENT, Scope.EVERYTHING], lifted_at__isnull=True
    ).order_by("mode")  # "paused" before "stopped", so the dict keeps the stricter
    return {row.key: StopMode(row.mode) for row in rows}


def build_agent_row(
    agent: Agent, waiting: int, switched: Mapping[str, StopMode]
) -> AgentRow:
    """Build the row of an agent that `load_agent` or `list_agents` selected, with
    `live` annotated. `switched` maps slugs to modes."""
    modes = {switched[key] for key in (agent.slug, "") if key in switched}
    word, icon = _describe_switch(modes) or ("Enabled", "ok")
    return AgentRow(agent, word, icon, waiting)


def describe_running_state(modes: set[StopMode], run: Any) -> tuple[str, str]:
    """Return the word and the icon for an unfinished run under these switches; `run` is
    annotated by `activity.annotate_goes_on`."""
    if switched := _describe_switch(modes):
        return switched
    if not run.goes_on:
        return "No activity for 24 hours", "wait"
    if run.under_way:
        return "Running", "run"
    if run.blocked_by:
        return "Blocked, nothing pending", "wait"
    return f"Idle since {format_time(run.idle_since)}", "wait"


def _describe_switch(modes: set[StopMode]) -> tuple[str, str] | None:
    if StopMode.STOPPED in modes:
        return "Stopped", "stop"
    return ("Paused", "pause") if modes else None


def load_agent(person: Person, slug: str) -> Agent:
    """Return the agent. Raises NotFound for one that this person may not see."""
    agent = select_visible_agents(person).filter(slug=slug).first()
    if agent is None:
        raise NotFound
    return agent
