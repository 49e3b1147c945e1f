"""What people may read of agents and their runs. Loading is authorising."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Exists, F, OuterRef, Prefetch, Q, QuerySet
from django.urls import reverse

from journal.errors import NotFound
from policies.models import Person
from reviews import permissions, stops
from reviews.choices import OPEN, Scope, StopMode
from reviews.models import ApprovalRequest, Proposal, Revision, Stop
from reviews.permissions import Permission
from reviews.presenters.shapes import Part
from reviews.queries import showing, states, visible
from reviews.queries.states import State, Tally
from reviews.queries.words import lines_of

from .choices import ThreadStatus
from .models import Agent, Checkpoint, Thread
from .outcomes import with_status

RUNS = 50
STEPS = 200
DAY = timedelta(hours=24)


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


@dataclass(frozen=True, slots=True)
class RunLine:
    name: str
    url: str
    started_at: datetime
    finished_at: datetime | None
    word: str
    icon: str


@dataclass(frozen=True, slots=True)
class AgentPage:
    agent: Agent
    line: AgentLine
    outcomes: list[tuple[str, int]]
    runs: list[RunLine]
    stop_url: str
    why_stopped: str


@dataclass(frozen=True, slots=True)
class Step:
    """One proposal of a run."""

    id: str
    at: datetime
    effect: tuple[Part, ...]
    risk: str
    tier: str
    tool: str
    state: State
    url: str
    parent: str


@dataclass(frozen=True, slots=True)
class ThreadPage:
    agent: Agent
    thread: Thread
    agent_url: str
    state: str
    icon: str
    asks_you: str
    checkpoint: Checkpoint | None
    structured: list[tuple[str, str]]
    steps: list[Step]
    goal: str
    stop_url: str


def _agents(person: Person) -> QuerySet[Agent]:
    """Own agents, those whose proposals the person may see, or all by role."""
    found = Agent.objects.select_related("owner")
    if permissions.allowed(person, Permission.SEE_ALL):
        return found
    seen = visible.proposals(person).filter(agent=OuterRef("slug"))
    return found.filter(Q(owner=person) | Exists(seen))


def agents(person: Person) -> list[AgentLine]:
    """Every agent this person may see, in three queries."""
    live = Count("threads", filter=Q(threads__status=ThreadStatus.RUNNING))
    found = list(_agents(person).annotate(live=live).order_by("name"))
    waiting = dict(
        visible.requests(person)
        .filter(status__in=OPEN)
        .values_list("proposal__agent")
        .annotate(n=Count("pk"))
    )
    switched = _switched()
    return [_agent_line(one, waiting, switched) for one in found]


def _switched() -> Mapping[str, StopMode]:
    """The strictest switch by agent slug; "" stands for everything."""
    rows = Stop.objects.filter(
        scope__in=[Scope.AGENT, Scope.EVERYTHING], lifted_at__isnull=True
    ).order_by("mode")  # paused before stopped, so the strictest stays
    return {row.key: StopMode(row.mode) for row in rows}


def _agent_line(
    agent: Agent, waiting: Mapping[str, int], switched: Mapping[str, StopMode]
) -> AgentLine:
    modes = {switched[key] for key in (agent.slug, "") if key in switched}
    word, icon = _running_word(modes)
    return AgentLine(
        slug=agent.slug,
        name=agent.name,
        url=reverse("agents:agent", args=[agent.slug]),
        owner=str(agent.owner),
        state=word,
        icon=icon,
        live=agent.live,  # type: ignore[attr-defined]
        waiting=waiting.get(agent.slug, 0),
    )


def _running_word(modes: set[StopMode]) -> tuple[str, str]:
    if StopMode.STOPPED in modes:
        return "Stopped", "stop"
    return ("Paused", "pause") if modes else ("Running", "run")


def load(person: Person, slug: str) -> Agent:
    """Raises NotFound for an agent this person may not see."""
    live = Count("threads", filter=Q(threads__status=ThreadStatus.RUNNING))
    found = _agents(person).filter(slug=slug).annotate(live=live).first()
    if found is None:
        raise NotFound
    return found


def agent_page(person: Person, slug: str, now: datetime) -> AgentPage:
    """One agent: today's proposals by outcome and its newest runs."""
    agent = load(person, slug)
    mine = visible.proposals(person).filter(agent=slug)
    waiting = visible.requests(person).filter(status__in=OPEN, proposal__agent=slug)
    today = with_status(mine.filter(created_at__gt=now - DAY))
    outcomes = today.values_list("said").annotate(n=Count("pk")).order_by("-n")
    seen = mine.filter(thread=OuterRef("name"))
    runs = agent.threads.order_by("-started_at")
    if agent.owner_id != person.pk:
        runs = runs.filter(Exists(seen))
    return AgentPage(
        agent=agent,
        line=_agent_line(agent, {slug: waiting.count()}, _switched()),
        outcomes=list(outcomes),
        runs=[_run_line(agent, run) for run in runs[:RUNS]],
        stop_url=reverse("agents:stop_agent", args=[slug]),
        why_stopped=_why_stopped(slug),
    )


def _why_stopped(slug: str) -> str:
    row = Stop.objects.filter(
        scope=Scope.AGENT, key=slug, lifted_at__isnull=True
    ).first()
    return row.reason if row else ""


def _run_line(agent: Agent, run: Thread) -> RunLine:
    finished = run.status == ThreadStatus.FINISHED
    return RunLine(
        name=run.name,
        url=reverse("agents:thread", args=[agent.slug, run.name]),
        started_at=run.started_at,
        finished_at=run.finished_at,
        word=run.result.replace("_", " ").capitalize() if finished else "Running",
        icon="ok" if finished else "run",
    )


def thread_page(person: Person, slug: str, name: str, now: datetime) -> ThreadPage:
    """One run: its checkpoint as people may read it, and every step it proposed.

    Raises NotFound. The opaque blob is never read here.
    """
    agent = load(person, slug)
    run = agent.threads.filter(name=name).first()
    steps = _steps(person, slug, name, now)
    if run is None or not (steps or agent.owner_id == person.pk):
        raise NotFound
    checkpoint = run.checkpoints.defer("blob").order_by("-number").first()
    word, icon = _thread_word(run, stops.in_force(slug, name, ""))
    asks = visible.decidable(person).filter(proposal__agent=slug, proposal__thread=name)
    first = asks.values_list("pk", flat=True).first()
    return ThreadPage(
        agent=agent,
        thread=run,
        agent_url=reverse("agents:agent", args=[slug]),
        state=word,
        icon=icon,
        asks_you=reverse("reviews:request_detail", args=[first]) if first else "",
        checkpoint=checkpoint,
        structured=list(lines_of(checkpoint.state)) if checkpoint else [],
        steps=steps,
        goal="",
        stop_url=reverse("agents:stop_thread", args=[slug, name]),
    )


def _thread_word(run: Thread, mode: StopMode | None) -> tuple[str, str]:
    if run.status == ThreadStatus.FINISHED:
        return f"Finished: {run.result.replace('_', ' ')}", "ok"
    return _running_word({mode} if mode else set())


def _steps(person: Person, slug: str, name: str, now: datetime) -> list[Step]:
    current = Revision.objects.filter(number=F("proposal__revision"))
    found = (
        visible.proposals(person)
        .filter(agent=slug, thread=name)
        .prefetch_related(
            Prefetch("revisions", current.select_related("tool"), to_attr="now"),
            Prefetch(
                "request",
                ApprovalRequest.objects.annotate(given=visible.given()),
            ),
            Prefetch("request__versions", visible.sealed_now(), to_attr="sealed_now"),
            "executions",
        )
        .order_by("-created_at")[:STEPS]
    )
    return [_step(one, now) for one in found]


def _step(proposal: Proposal, now: datetime) -> Step:
    revision = proposal.now[0]  # type: ignore[attr-defined]
    request = getattr(proposal, "request", None)
    return Step(
        id=proposal.pk,
        at=proposal.created_at,
        effect=showing.effect(revision),
        risk=revision.risk,
        tier=revision.tier,
        tool=proposal.tool_name,
        state=_state(proposal, request, now),
        url=reverse("reviews:request_detail", args=[request.pk]) if request else "",
        parent=proposal.parent,
    )


def _state(proposal: Proposal, request: Any, now: datetime) -> State:
    if proposal.blocked_by:
        return State("blocked", f"Blocked: {proposal.blocked_by}", icon="void")
    execution = next(iter(proposal.executions.all()), None)
    if request is None:
        return states.of_execution(execution)
    sealed = request.sealed_now[0]
    tally = Tally(request.given, sum(step["required"] for step in sealed.steps))
    return states.of_request(request, execution, tally, cause=sealed.cause, now=now)
