"""The page model of one run: its state, what it proposed and used, what is in flight,
its latest checkpoint, and related runs (proposals name a `parent`).

The checkpoint's state is the agent's own statement. Its keys `goal`, `plan` and
`budget` are shown apart, the rest as a typed table. The blob is never read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Min, Q, QuerySet, Sum
from django.urls import reverse

from agents.choices import ThreadStatus
from agents.models import Agent, Checkpoint, Thread
from agents.representation import with_status
from journal.errors import NotFound
from policies.models import Person
from policies.money import Money, format_amount
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.desk.components import in_flight, visibility
from reviews.desk.components import switches as components_switches
from reviews.desk.components.in_flight import Action
from reviews.desk.components.switches import Switch
from reviews.effects.wording import lines_of, scalar
from reviews.models import ApprovalRequest, Proposal
from reviews.permissions import Permission
from reviews.stops import stops

from . import activity
from . import steps as desk_steps
from .steps import Step
from .visibility import load, running_word

MOST = 20


@dataclass(frozen=True, slots=True)
class Relative:
    """A run that started this one, or that this one started. `proposals` counts its
    proposals that name this run's as parents, or are the parents of this run's; `since`
    is when the first of them was created."""

    agent: str
    thread: str
    since: datetime
    proposals: int

    @property
    def url(self) -> str:
        return reverse("agents:thread", args=[self.agent, self.thread])


def children(person: Person, agent: str, thread: str) -> list[Relative]:
    """List the runs whose proposals have a proposal of this run as their parent, as far
    as this person may see them."""
    own = Proposal.objects.filter(agent=agent, thread=thread).values("pk")
    # exclude(parent="") is the condition of the partial index.
    found = visibility.proposals(person).exclude(parent="").filter(parent__in=own)
    return _runs(found, agent, thread)


def parents(person: Person, agent: str, thread: str) -> list[Relative]:
    """List the runs that have the parents of this run's proposals, as far as this
    person may see them."""
    named = Proposal.objects.filter(agent=agent, thread=thread).exclude(parent="")
    found = visibility.proposals(person).filter(pk__in=named.values("parent"))
    return _runs(found, agent, thread)


def _runs(found: QuerySet[Proposal], agent: str, thread: str) -> list[Relative]:
    runs = (
        found.exclude(Q(agent=agent) & Q(thread=thread))
        .values_list("agent", "thread")
        .annotate(since=Min("created_at"), n=Count("pk", distinct=True))
        .order_by("since")
    )
    return [Relative(*one) for one in runs[:MOST]]


MOST_ROWS = 200
DEEPEST = 12
# Icons for the words that agents use most; any other word has none.
SIGNS = {
    "done": "ok",
    "doing": "run",
    "waiting": "pause",
    "next": "wait",
    "skipped": "void",
    "failed": "no",
}


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of the agent's plan; `state` is the agent's word for it, or ""."""

    text: str
    state: str = ""

    @property
    def icon(self) -> str:
        return SIGNS.get(self.state, "")


@dataclass(frozen=True, slots=True)
class Cell:
    """One leaf of the checkpoint's state: its path, the kind of value, the value."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """A checkpoint's state as the page shows it. `more` counts the cells that are left
    out."""

    goal: str = ""
    plan: list[PlanStep] = field(default_factory=list)
    budget: list[tuple[str, str]] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    more: int = 0

    @property
    def any(self) -> bool:
        return bool(self.goal or self.plan or self.budget)


def told(state: Mapping[str, Any]) -> Told:
    """Build the page's view of a state. `goal`, `plan` and `budget` are set apart only
    when they have the expected shape; otherwise they stay among the cells."""
    rest = dict(state)
    goal, plan = state.get("goal"), _plan(state.get("plan"))
    budget = state.get("budget")
    if isinstance(goal, str):
        rest.pop("goal")
    if plan:
        rest.pop("plan")
    if isinstance(budget, dict):
        rest.pop("budget")
    cells = list(_cells(rest))
    return Told(
        goal=goal if isinstance(goal, str) else "",
        plan=plan,
        budget=list(lines_of(budget)) if isinstance(budget, dict) and budget else [],
        cells=cells[:MOST_ROWS],
        more=max(len(cells) - MOST_ROWS, 0),
    )


def _plan(said: Any) -> list[PlanStep]:
    """Parse a list of sentences or of `{"step": …, "state": …}`. A list with anything
    else in it gives no plan at all."""
    steps = [_plan_step(one) for one in said] if isinstance(said, list) else []
    return [one for one in steps if one] if all(steps) else []


def _plan_step(one: Any) -> PlanStep | None:
    if isinstance(one, str):
        return PlanStep(one)
    if isinstance(one, dict) and set(one) <= {"step", "state"} and "step" in one:
        return PlanStep(scalar(one["step"]), scalar(one.get("state", "")))
    return None


def _cells(value: Any, path: str = "", depth: int = 0) -> Iterator[Cell]:
    if isinstance(value, dict) and value and depth < DEEPEST:
        for key, inner in value.items():
            yield from _cells(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list) and value and depth < DEEPEST:
        for number, inner in enumerate(value, 1):
            yield from _cells(inner, f"{path} {number}".strip(), depth + 1)
    elif path:
        yield Cell(path, _kind(value), scalar(value))


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return "list"
    return "group" if isinstance(value, dict) else "text"


STEPS = 200
UNDER_WAY = ("granted", "executing")
# Statuses in which the effect happened, or may have.
SPENT = {"executed": "done", "unknown": "outcome unknown", "executing": "running"}


@dataclass(frozen=True, slots=True)
class Asks:
    """An open request of this run that this person may decide."""

    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Used:
    """What the run used so far, by Holdpoint's count: proposals by status word, and
    pairs of an amount and whether it was moved."""

    proposals: int
    outcomes: list[tuple[str, int]]
    money: list[tuple[str, str]]

    def count(self, *words: str) -> int:
        """Count the proposals with any of these status words."""
        return sum(n for word, n in self.outcomes if word in words)


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Everything that the page of one run shows."""

    agent: Agent
    thread: Thread
    agent_url: str
    state: str
    icon: str
    asks: list[Asks]
    switches: list[Switch]
    used: Used
    actions: list[Action]
    checkpoint: Checkpoint | None
    told: Told
    steps: list[Step]
    stop_url: str
    repair_url: str = ""
    children: list[Relative] = field(default_factory=list)
    parents: list[Relative] = field(default_factory=list)

    @property
    def older(self) -> int:
        """How many proposals are not listed."""
        return max(self.used.proposals - len(self.steps), 0)


def thread_page(person: Person, slug: str, name: str, now: datetime) -> ThreadPage:
    """Build the page of one run as this person may read it, in a bounded number of
    queries. The encrypted blob is not read.

    Raises NotFound for a run that this person may not see.
    """
    agent = load(person, slug)
    run = activity.marked(agent.threads.filter(name=name), slug, now).first()
    mine = visibility.proposals(person).filter(agent=slug, thread=name)
    found = desk_steps.read(person, mine.order_by("-created_at")[:STEPS], now)
    if run is None or not (found or agent.owner_id == person.pk):
        raise NotFound
    checkpoint = run.checkpoints.defer("blob").order_by("-number").first()
    held = components_switches.over(person, slug, name)
    used = _used(mine)
    word, icon = _word(run, held, used.count("pending"))
    return ThreadPage(
        agent=agent,
        thread=run,
        agent_url=reverse("agents:agent", args=[slug]),
        state=word,
        icon=icon,
        asks=_asks(person, slug, name),
        switches=held,
        used=used,
        actions=_under_way(person, slug, name) if used.count(*UNDER_WAY) else [],
        checkpoint=checkpoint,
        told=told(checkpoint.state if checkpoint else {}),
        steps=found,
        stop_url=reverse("agents:stop_thread", args=[slug, name]),
        repair_url=_repair_url(person, slug, name),
        children=children(person, slug, name),
        parents=_parents(person, slug, name, found),
    )


def _repair_url(person: Person, slug: str, name: str) -> str:
    if not permissions.allowed(person, Permission.PROPOSE_REPAIR):
        return ""
    return reverse("agents:repair_run", args=[slug, name])


def _parents(
    person: Person, slug: str, name: str, found: Iterable[Step]
) -> list[Relative]:
    named = any(step.parent for step in found)
    return parents(person, slug, name) if named else []


def _under_way(person: Person, slug: str, name: str) -> list[Action]:
    return in_flight.actions(person, Scope.THREAD, stops.thread_key(slug, name))


def _word(run: Any, held: Iterable[Switch], waiting: int) -> tuple[str, str]:
    if run.status == ThreadStatus.FINISHED:
        return f"Finished: {run.result.replace('_', ' ')}", "ok"
    modes = {StopMode.PAUSED if one.paused else StopMode.STOPPED for one in held}
    if not modes and waiting:
        return f"Waits for people, {waiting} asked", "wait"
    return running_word(modes, goes_on=run.goes_on)


def _asks(person: Person, slug: str, name: str) -> list[Asks]:
    found = visibility.decidable(person).filter(
        proposal__agent=slug, proposal__thread=name
    )
    return [_asked(one) for one in found.order_by("expires_at")[:STEPS]]


def _asked(request: ApprovalRequest) -> Asks:
    url = reverse("reviews:request_detail", args=[request.pk])
    return Asks(url, request.expires_at)


def _used(mine: Any) -> Used:
    """Compute the usage over all proposals of the run, not only the listed ones."""
    rows = list(
        with_status(mine.filter(revisions__number=F("revision")))
        .values_list("said", "revisions__currency")
        .annotate(n=Count("pk"), minor=Sum("revisions__amount_minor"))
        .order_by()
    )
    counts: dict[str, int] = {}
    for said, _, n, _ in rows:
        counts[said] = counts.get(said, 0) + n
    money = [
        (f"{format_amount(Money(minor, currency))} {currency}", SPENT[said])
        for said, currency, _, minor in rows
        if minor and currency and said in SPENT
    ]
    return Used(sum(counts.values()), desk_steps.counted(counts.items()), sorted(money))
