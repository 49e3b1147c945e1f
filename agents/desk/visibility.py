"""The list of agents, and which of them a person may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.urls import reverse

from agents.choices import ThreadStatus
from agents.models import Agent
from journal.errors import NotFound
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, Scope, StopMode
from reviews.desk.components import visibility
from reviews.models import Stop
from reviews.permissions import Permission


@dataclass(frozen=True, slots=True)
class AgentLine:
    slug: str
    name: str
    url: str
    owner: str
    state: str
    icon: str
    live: int
    waiting: int


def _agents(person: Person) -> QuerySet[Agent]:
    """Own agents, those whose proposals the person may see, or all by role."""
    live = Count("threads", filter=Q(threads__status=ThreadStatus.RUNNING))
    found = Agent.objects.select_related("owner").annotate(live=live)
    if permissions.allowed(person, Permission.SEE_ALL):
        return found
    seen = visibility.proposals(person).filter(agent=OuterRef("slug"))
    return found.filter(Q(owner=person) | Exists(seen))


def agents(person: Person) -> list[AgentLine]:
    """Every agent this person may see, in three queries."""
    found = list(_agents(person).order_by("name"))
    waiting = dict(
        visibility.requests(person)
        .filter(status__in=OPEN)
        .values_list("agent")
        .annotate(n=Count("pk"))
    )
    switched = _switched()
    return [line_of(one, waiting.get(one.slug, 0), switched) for one in found]


def _switched() -> Mapping[str, StopMode]:
    """The strictest switch by agent slug; "" stands for everything."""
    rows = Stop.objects.filter(
        scope__in=[Scope.AGENT, Scope.EVERYTHING], lifted_at__isnull=True
    ).order_by("mode")  # paused before stopped, so the strictest stays
    return {row.key: StopMode(row.mode) for row in rows}


def line_of(agent: Agent, waiting: int, switched: Mapping[str, StopMode]) -> AgentLine:
    """From an agent as `load` annotates it; `switched` are modes by slug."""
    modes = {switched[key] for key in (agent.slug, "") if key in switched}
    word, icon = running_word(modes)
    return AgentLine(
        slug=agent.slug,
        name=agent.name,
        url=reverse("agents:agent", args=[agent.slug]),
        owner=str(agent.owner),
        state=word,
        icon=icon,
        live=agent.live,  # type: ignore[attr-defined]
        waiting=waiting,
    )


def running_word(modes: set[StopMode], *, goes_on: bool = True) -> tuple[str, str]:
    """What the switches in force make of an agent or a run."""
    if StopMode.STOPPED in modes:
        return "Stopped", "stop"
    if modes:
        return "Paused", "pause"
    return ("Running", "run") if goes_on else ("Nothing done for 24 hours", "wait")


def load(person: Person, slug: str) -> Agent:
    """Raises NotFound for an agent this person may not see."""
    found = _agents(person).filter(slug=slug).first()
    if found is None:
        raise NotFound
    return found
