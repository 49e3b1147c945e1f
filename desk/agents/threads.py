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
from agents.representation import annotate_status
from journal.errors import NotFound
from policies.models import Person
from policies.money import Money
from reviews import permissions
from reviews.choices import EXECUTION_SPECS, IN_FLIGHT, Scope, StopMode
from reviews.effects.wording import flatten_value, format_scalar
from reviews.models import ApprovalRequest, Proposal
from reviews.roles import Permission
from reviews.stops import stops

from ..components import in_flight, visibility
from ..components import switches as components_switches
from ..components.in_flight import InFlightAction
from ..components.switches import SwitchLine
from ..standing_grants.page import StandingGrantLine, list_run_standing_grants
from . import activity
from . import steps as desk_steps
from .run_summaries import find_result_icon
from .steps import ProposalRow
from .visibility import describe_running_state, load_agent

MAX_RELATED_RUNS = 20


@dataclass(frozen=True, slots=True)
class RelatedRun:
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


def list_child_runs(person: Person, agent: str, thread: str) -> list[RelatedRun]:
    """List the runs whose proposals have a proposal of this run as their parent, as far
    as this person may see them."""
    own = Proposal.objects.filter(agent=agent, thread=thread).values("pk")
    # exclude(parent="") is the condition of the partial index.
    children = (
        visibility.select_visible_proposals(person)
        .exclude(parent="")
        .filter(parent__in=own)
    )
    return _list_related_runs(children, agent, thread)


def list_parent_runs(person: Person, agent: str, thread: str) -> list[RelatedRun]:
    """List the runs that have the parents of this run's proposals, as far as this
    person may see them."""
    named = Proposal.objects.filter(agent=agent, thread=thread).exclude(parent="")
    parents = visibility.select_visible_proposals(person).filter(
        pk__in=named.values("parent")
    )
    return _list_related_runs(parents, agent, thread)


def _list_related_runs(
    proposals: QuerySet[Proposal], agent: str, thread: str
) -> list[RelatedRun]:
    runs = (
        proposals.exclude(Q(agent=agent) & Q(thread=thread))
        .values_list("agent", "thread")
        .annotate(since=Min("created_at"), n=Count("pk", distinct=True))
        .order_by("since")
    )
    return [RelatedRun(*run) for run in runs[:MAX_RELATED_RUNS]]


MAX_STATE_ROWS = 200
MAX_STATE_DEPTH = 12
# Icons for the words that agents use most; any other word has none.
PLAN_ICONS = {
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
        return PLAN_ICONS.get(self.state, "")


@dataclass(frozen=True, slots=True)
class StateCell:
    """One leaf of the checkpoint's state: its path, the kind of value, the value."""

    path: str
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentState:
    """A checkpoint's state as the page shows it. `more` counts the cells that are left
    out."""

    goal: str = ""
    plan: list[PlanStep] = field(default_factory=list)
    budget: list[tuple[str, str]] = field(default_factory=list)
    cells: list[StateCell] = field(default_factory=list)
    more: int = 0

    @property
    def any(self) -> bool:
        return bool(self.goal or self.plan or self.budget)


def build_agent_state(state: Mapping[str, Any]) -> AgentState:
    """Build the page's view of a state. `goal`, `plan` and `budget` are set apart only
    when they have the expected shape; otherwise they stay among the cells."""
    rest = dict(state)
    goal, plan = state.get("goal"), _parse_plan(state.get("plan"))
    budget = state.get("budget")
    if isinstance(goal, str):
        rest.pop("goal")
    if plan:
        rest.pop("plan")
    if isinstance(budget, dict):
        rest.pop("budget")
    cells = list(_flatten_cells(rest))
    return AgentState(
        goal=goal if isinstance(goal, str) else "",
        plan=plan,
        budget=list(flatten_value(budget))
        if isinstance(budget, dict) and budget
        else [],
        cells=cells[:MAX_STATE_ROWS],
        more=max(len(cells) - MAX_STATE_ROWS, 0),
    )


def _parse_plan(plan: Any) -> list[PlanStep]:
    """Parse a list of sentences or of `{"step": …, "state": …}`. A list with anything
    else in it gives no plan at all."""
    steps = [_parse_plan_step(step) for step in plan] if isinstance(plan, list) else []
    return [step for step in steps if step] if all(steps) else []


def _parse_plan_step(step: Any) -> PlanStep | None:
    if isinstance(step, str):
        return PlanStep(step)
    if isinstance(step, dict) and set(step) <= {"step", "state"} and "step" in step:
        return PlanStep(
            format_scalar(step["step"]), format_scalar(step.get("state", ""))
        )
    return None


def _flatten_cells(value: Any, path: str = "", depth: int = 0) -> Iterator[StateCell]:
    if isinstance(value, dict) and value and depth < MAX_STATE_DEPTH:
        for key, inner in value.items():
            yield from _flatten_cells(
                inner, f"{path}.{key}" if path else str(key), depth + 1
            )
    elif isinstance(value, list) and value and depth < MAX_STATE_DEPTH:
        for number, inner in enumerate(value, 1):
            yield from _flatten_cells(inner, f"{path} {number}".strip(), depth + 1)
    elif path:
        yield StateCell(path, _describe_kind(value), format_scalar(value))


def _describe_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "yes or no"
    if isinstance(value, int | float):
        return "number"
    if value is None:
        return "nothing"
    if isinstance(value, list):
        return "list"
    return "group" if isinstance(value, dict) else "text"


MAX_STEPS = 200
UNDER_WAY = [EXECUTION_SPECS[status].api_word for status in IN_FLIGHT]
# Statuses in which the effect happened, or may have.
MONEY_WORDS = {
    "executed": "executed",
    "unknown": "unknown result",
    "executing": "running",
}


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What the run used so far, by Counterseal's count: proposals by status word, and
    pairs of an amount and whether it was moved."""

    proposals: int
    outcomes: list[tuple[str, int]]
    money: list[tuple[str, str]]

    def count(self, *words: str) -> int:
        """Count the proposals with any of these status words."""
        return sum(n for word, n in self.outcomes if word in words)

    @property
    def labels(self) -> list[tuple[str, int]]:
        """The outcomes under the words that the page shows."""
        return desk_steps.label_outcomes(self.outcomes)


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """Everything that the page of one run shows."""

    agent: Agent
    thread: Thread
    state: str
    icon: str
    asks: list[ApprovalRequest]
    switches: list[SwitchLine]
    used: RunUsage
    actions: list[InFlightAction]
    checkpoint: Checkpoint | None
    agent_state: AgentState
    steps: list[ProposalRow]
    stop_url: str
    stopped: bool  # the run itself; not its agent, nor everything
    repair_url: str = ""
    standing_grants: list[StandingGrantLine] = field(default_factory=list)
    children: list[RelatedRun] = field(default_factory=list)
    parents: list[RelatedRun] = field(default_factory=list)

    @property
    def may_stop(self) -> bool:
        """Whether a stop can still change something: an action is under way, or the run
        is neither finished nor stopped."""
        return bool(self.actions) or not (self.thread.finished_at or self.stopped)

    @property
    def older(self) -> int:
        """How many proposals are not listed."""
        return max(self.used.proposals - len(self.steps), 0)


def build_thread_page(
    person: Person, slug: str, name: str, now: datetime
) -> ThreadPage:
    """Build the page of one run as this person may read it, in a bounded number of
    queries. The encrypted blob is not read. Raises NotFound for a run that this person
    may not see."""
    agent = load_agent(person, slug)
    run = activity.annotate_goes_on(agent.threads.filter(name=name), slug, now).first()
    visible = visibility.select_visible_proposals(person).filter(
        agent=slug, thread=name
    )
    steps = desk_steps.list_proposal_rows(
        person, visible.order_by("-created_at")[:MAX_STEPS], now
    )
    if run is None or not (steps or agent.owner_id == person.pk):
        raise NotFound
    checkpoint = run.checkpoints.defer("blob").order_by("-number").first()
    held = components_switches.list_agent_switches(person, slug, name)
    used = _compute_usage(visible)
    target = f"{Scope.THREAD}:{stops.build_thread_key(slug, name)}"
    word, icon = _describe_run(run, held, used)
    return ThreadPage(
        agent=agent,
        thread=run,
        state=word,
        icon=icon,
        asks=_list_waiting_requests(person, slug, name),
        switches=held,
        used=used,
        actions=_list_in_flight(person, slug, name) if used.count(*UNDER_WAY) else [],
        checkpoint=checkpoint,
        agent_state=build_agent_state(checkpoint.state if checkpoint else {}),
        steps=steps,
        stop_url=reverse("agents:stop_thread", args=[slug, name]),
        stopped=any(switch.target == target and not switch.paused for switch in held),
        repair_url=_build_repair_url(person, slug, name),
        standing_grants=list_run_standing_grants(person, slug, name),
        children=list_child_runs(person, slug, name),
        parents=_find_parent_runs(person, slug, name, steps),
    )


def _build_repair_url(person: Person, slug: str, name: str) -> str:
    if not permissions.has_permission(person, Permission.PROPOSE_REPAIR):
        return ""
    return reverse("agents:repair_run", args=[slug, name])


def _find_parent_runs(
    person: Person, slug: str, name: str, steps: Iterable[ProposalRow]
) -> list[RelatedRun]:
    named = any(step.parent for step in steps)
    return list_parent_runs(person, slug, name) if named else []


def _list_in_flight(person: Person, slug: str, name: str) -> list[InFlightAction]:
    return in_flight.list_actions(
        person, Scope.THREAD, stops.build_thread_key(slug, name)
    )


def _describe_run(
    run: Any, held: Iterable[SwitchLine], used: RunUsage
) -> tuple[str, str]:
    waiting = used.count("pending")
    if run.status == ThreadStatus.FINISHED:
        icon = find_result_icon(run.result, [word for word, _ in used.outcomes])
        return f"Finished: {run.result.replace('_', ' ')}", icon
    modes = {StopMode.PAUSED if switch.paused else StopMode.STOPPED for switch in held}
    if not modes and waiting:
        return f"Waiting for approval, {waiting} pending", "wait"
    return describe_running_state(modes, run)


def _list_waiting_requests(
    person: Person, slug: str, name: str
) -> list[ApprovalRequest]:
    requests = visibility.select_decidable(person).filter(
        proposal__agent=slug, proposal__thread=name
    )
    return list(requests.order_by("expires_at")[:MAX_STEPS])


def _compute_usage(visible: Any) -> RunUsage:
    """Compute the usage over all proposals of the run, not only the listed ones."""
    rows = list(
        annotate_status(visible.filter(revisions__number=F("revision")))
        .values_list("said", "revisions__currency")
        .annotate(n=Count("pk"), minor=Sum("revisions__amount_minor"))
        .order_by()
    )
    counts: dict[str, int] = {}
    for status, _, n, _ in rows:
        counts[status] = counts.get(status, 0) + n
    money = [
        (str(Money(int(minor), currency)), MONEY_WORDS[status])
        for status, currency, _, minor in rows
        if minor and currency and status in MONEY_WORDS
    ]
    return RunUsage(
        sum(counts.values()), desk_steps.sort_outcomes(counts.items()), sorted(money)
    )
