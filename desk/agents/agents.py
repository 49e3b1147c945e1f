"""The page model of one agent: its registration, limits and keys, today's outcomes, its
runs, and its recent history of failures, refusals, rejections, blocks, unknown outcomes
and near misses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Count, Exists, Max, OuterRef, Q, QuerySet
from django.urls import reverse

from agents import budgets as agent_budgets
from agents.choices import ThreadStatus
from agents.models import Agent, Thread
from agents.representation import annotate_status
from policies import active, money
from policies import tools as policies_tools
from policies.choices import APPROVAL_LABELS, Risk
from policies.models import Person, Tool
from policies.money import Money
from reviews import permissions
from reviews.choices import Scope, StopMode
from reviews.models import IS_OPEN, ApprovalRequest, Proposal, Sighting, Stop
from reviews.roles import Permission
from reviews.stops import stops

from ..components import switches as components_switches
from ..components import visibility
from ..components.switches import SwitchLine
from . import activity, deliveries, setting_changes, steps
from .run_summaries import (
    PROBLEM_WORDS,
    RunSummary,
    find_result_icon,
    load_run_summaries,
)
from .setting_changes import SettingsLine
from .steps import ProposalRow
from .visibility import AgentRow, build_agent_row, describe_running_state, load_agent

HISTORY_PERIOD = timedelta(days=30)
# The history reads at most this many of the newest proposals, so that the page's cost
# does not depend on the agent.
MAX_HISTORY = 1000
MAX_SHOWN = 15


@dataclass(frozen=True, slots=True)
class AgentHistory:
    """What went wrong within HISTORY_PERIOD. `read` counts the examined proposals,
    `near_misses` those of them with a near miss; `figures` are counts by cause."""

    read: int = 0
    figures: list[tuple[str, int]] = field(default_factory=list)
    near_misses: int = 0
    newest: list[ProposalRow] = field(default_factory=list)

    @property
    def is_all(self) -> bool:
        """Whether the period has no more proposals than were examined."""
        return self.read < MAX_HISTORY


def build_history(
    person: Person, visible: QuerySet[Proposal], now: datetime
) -> AgentHistory:
    """Build the history of these proposals, with three queries and those for the rows
    of the newest that went wrong."""
    period = visible.filter(created_at__gt=now - HISTORY_PERIOD, canary=False)
    proposals = _annotate_outcome(visibility.select_newest(period, MAX_HISTORY))
    rows = list(
        proposals.values_list("said", "near_miss").annotate(n=Count("pk")).order_by()
    )
    counts: dict[str, int] = {}
    for word, _, n in rows:
        counts[word] = counts.get(word, 0) + n
    wrong = proposals.filter(Q(said__in=PROBLEM_WORDS) | Q(near_miss=True)).order_by(
        "-created_at"
    )
    return AgentHistory(
        read=sum(counts.values()),
        figures=[
            (PROBLEM_WORDS[word], counts[word])
            for word in PROBLEM_WORDS
            if word in counts
        ],
        near_misses=sum(n for _, missed, n in rows if missed),
        newest=steps.list_proposal_rows(person, wrong[:MAX_SHOWN], now),
    )


def _annotate_outcome(proposals: QuerySet[Proposal]) -> QuerySet[Any]:
    missed = Sighting.objects.filter(execution__proposal=OuterRef("pk"), near_miss=True)
    rows: QuerySet[Any] = annotate_status(proposals).annotate(near_miss=Exists(missed))
    return rows


MAX_RUNS = 50
MAX_LIVE_RUNS = 10  # active runs shown at once; the rest is in a closed section
DAY = timedelta(hours=24)
MINUTE = timedelta(minutes=1)
MAX_READ_OF_DAY = 5000  # proposals of a day that today's outcomes count


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in the agent's lists."""

    thread: Any  # a Thread, annotated by `activity.annotate_goes_on`
    word: str
    icon: str
    summary: RunSummary


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool that the agent may propose; `version` is None when the active policy does
    not have it."""

    name: str
    title: str = ""
    version: int | None = None
    risk: str = ""
    approval: str = ""
    queue: str = ""
    above: bool = False  # the agent's maximum risk: its proposals are refused


@dataclass(frozen=True, slots=True)
class MoneyUse:
    """How much of an agent's budget in one currency is used, for people; `percent` is
    at most 100."""

    currency: str
    used: str
    limit: str
    percent: int


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """The agent's limits beside the policy, and how much of them is used: proposals a
    minute, proposals and money in 24 hours, and waiting requests."""

    a_minute: int
    this_minute: int
    may_wait: int
    waiting: int
    this_day: int | None  # None where the agent has no limit of a day
    money: Sequence[MoneyUse]


@dataclass(frozen=True, slots=True)
class KeySummary:
    """How many keys of the agent are valid, and when any was last used."""

    in_force: int
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True)
class AgentPage:
    """Everything that the page of one agent shows."""

    agent: Agent
    line: AgentRow
    limits: AgentLimits
    keys: KeySummary
    tools: list[ToolRow]
    outcomes: list[tuple[str, int]]
    history: AgentHistory
    runs: list[RunRow]
    not_over: int
    switches: list[SwitchLine]
    stop_url: str
    hears: bool  # whether this person may see the agent's endpoints
    endpoints: int
    changes: Sequence[SettingsLine]  # of its settings, by two people; newest first
    manages: bool  # whether they may change its settings
    manages_keys: bool

    @property
    def live(self) -> list[RunRow]:
        """The newest active runs."""
        return [run for run in self._open if run.thread.goes_on][:MAX_LIVE_RUNS]

    @property
    def rest(self) -> list[RunRow]:
        """The newest of the other runs that the agent has not finished."""
        return self._open[len(self.live) :]

    @property
    def rest_count(self) -> int:
        return self.not_over - len(self.live)

    @property
    def _open(self) -> list[RunRow]:
        return [run for run in self.runs if run.thread.finished_at is None]

    @property
    def past(self) -> list[RunRow]:
        return [run for run in self.runs if run.thread.finished_at is not None]


def build_agent_page(person: Person, slug: str, now: datetime) -> AgentPage:
    """Build the page of one agent as this person may read it, in a bounded number of
    queries. Raises NotFound for an agent that this person may not see."""
    agent = load_agent(person, slug)
    visible = visibility.select_visible_proposals(person).filter(agent=slug)
    held = components_switches.list_agent_switches(person, slug)
    waiting = _count_waiting(person, slug)
    every = _select_visible_runs(person, agent, visible)
    runs = _list_runs(every, slug, now)
    modes = _compute_run_modes(agent, held, runs)
    summaries = load_run_summaries(person, runs)
    return AgentPage(
        agent=agent,
        line=build_agent_row(
            agent, sum(waiting.values()), _compute_agent_modes(slug, held)
        ),
        limits=_build_limits(person, agent, now),
        keys=_build_key_summary(agent, now),
        tools=_list_tools(agent),
        outcomes=_count_todays_outcomes(visible, now),
        history=build_history(person, visible, now),
        runs=[
            build_run_row(
                run,
                waiting.get(run.name, 0),
                modes[run.name],
                summaries[slug, run.name],
            )
            for run in runs
        ],
        not_over=every.filter(status=ThreadStatus.RUNNING).count(),
        switches=held,
        stop_url=reverse("agents:stop_agent", args=[slug]),
        hears=deliveries.may_read(person, agent),
        endpoints=agent.endpoints.count(),
        changes=setting_changes.list_changes(agent, person),
        manages=permissions.has_permission(person, Permission.MANAGE_AGENTS),
        manages_keys=may_manage_keys(person, agent),
    )


def may_manage_keys(person: Person, agent: Agent) -> bool:
    """Whether this person may issue and revoke keys of the agent."""
    owns = agent.owner_id == person.pk
    return owns or permissions.has_permission(person, Permission.MANAGE_AGENTS)


def _compute_agent_modes(slug: str, held: Iterable[SwitchLine]) -> dict[str, StopMode]:
    modes = [StopMode.PAUSED if switch.paused else StopMode.STOPPED for switch in held]
    return {slug: sorted(modes)[-1]} if modes else {}  # "paused" before "stopped"


def _compute_run_modes(
    agent: Agent, held: Iterable[SwitchLine], runs: Iterable[Thread]
) -> dict[str, set[StopMode]]:
    """Return the modes in force by run: the run's own switches and those over the
    agent."""
    over_all = set(_compute_agent_modes(agent.slug, held).values())
    keys = {stops.build_thread_key(agent.slug, run.name): run.name for run in runs}
    own = Stop.objects.filter(
        scope=Scope.THREAD, key__in=list(keys), lifted_at__isnull=True
    )
    modes = {name: set(over_all) for name in keys.values()}
    for row in own:
        modes[keys[row.key]].add(StopMode(row.mode))
    return modes


def _count_waiting(person: Person, slug: str) -> dict[str, int]:
    requests = visibility.select_visible_requests(person).filter(IS_OPEN, agent=slug)
    return dict(
        requests.values_list("proposal__thread").annotate(n=Count("pk")).order_by()
    )


def _build_limits(person: Person, agent: Agent, now: datetime) -> AgentLimits:
    slug = agent.slug
    recent = Proposal.objects.filter(agent=slug, created_at__gt=now - MINUTE)
    waits = ApprovalRequest.with_canaries.filter(
        IS_OPEN, agent=slug, canary_for__in=["", person.public_id]
    )
    figures = settings.COUNTERSEAL
    return AgentLimits(
        a_minute=figures.agent_rate_per_minute,
        this_minute=recent.count(),
        may_wait=figures.agent_pending_cap,
        waiting=waits.count(),
        this_day=_count_day(agent, now),
        money=_list_money(agent, now),
    )


def _count_day(agent: Agent, now: datetime) -> int | None:
    if agent.daily_proposals is None:
        return None
    return agent_budgets.select_day_proposals(agent, now).count()


def _list_money(agent: Agent, now: datetime) -> list[MoneyUse]:
    uses = agent_budgets.list_money_uses(agent, now)
    return [_build_money_use(limit, used) for limit, used in uses]


def _build_money_use(limit: Money, used: Money) -> MoneyUse:
    share = used.minor * 100 // limit.minor if limit.minor else 100
    spent = money.format_money(used)
    return MoneyUse(
        currency=limit.currency,
        used=spent.removesuffix(f" {limit.currency}"),
        limit=money.format_money(limit),
        percent=min(share, 100),
    )


def _build_key_summary(agent: Agent, now: datetime) -> KeySummary:
    ended = Q(revoked_at__isnull=False) | Q(expires_at__lte=now)
    counted = agent.keys.aggregate(
        n=Count("pk", filter=~ended), last=Max("last_used_at")
    )
    return KeySummary(counted["n"], counted["last"])


def _list_tools(agent: Agent) -> list[ToolRow]:
    version = active.find_active_policy()
    known = active.load_tools(version) if version else {}
    names = known if agent.has_every_tool else agent.tools
    return [
        _build_tool_row(known[name], agent) if name in known else ToolRow(name)
        for name in sorted(names)
    ]


def _build_tool_row(tool: Tool, agent: Agent) -> ToolRow:
    defined = policies_tools.load_definition(tool)
    return ToolRow(
        name=tool.name,
        title=defined.title,
        version=tool.version,
        risk=tool.risk,
        approval="Depends on arguments"
        if defined.classes
        else APPROVAL_LABELS[defined.base],
        queue=defined.queue,
        above=Risk(tool.risk).rank > Risk(agent.risk_ceiling).rank,
    )


def _count_todays_outcomes(
    visible: QuerySet[Proposal], now: datetime
) -> list[tuple[str, int]]:
    today = visible.filter(created_at__gt=now - DAY, canary=False)
    outcomes = (
        annotate_status(visibility.select_newest(today, MAX_READ_OF_DAY))
        .values_list("said")
        .annotate(n=Count("pk"))
        .order_by()
    )
    return steps.label_outcomes(steps.sort_outcomes(outcomes))


def _select_visible_runs(
    person: Person, agent: Agent, visible: QuerySet[Proposal]
) -> QuerySet[Thread]:
    runs = agent.threads.select_related("agent").order_by("-started_at")
    if agent.owner_id == person.pk:
        return runs
    return runs.filter(Exists(visible.filter(thread=OuterRef("name"))))


def _list_runs(every: QuerySet[Thread], slug: str, now: datetime) -> list[Any]:
    runs = activity.annotate_goes_on(every, slug, now)
    live, over = (runs.filter(status=status) for status in ThreadStatus)
    return [*live.order_by("-goes_on", "-started_at")[:MAX_RUNS], *over[:MAX_RUNS]]


def build_run_row(
    run: Any, waiting: int, modes: set[StopMode], summary: RunSummary
) -> RunRow:
    """The row of a run, annotated by `activity.annotate_goes_on`, in which so many
    requests wait, under these stops and pauses."""
    if run.status == ThreadStatus.FINISHED:
        word = run.result.replace("_", " ").capitalize()
        return RunRow(run, word, find_result_icon(run.result, summary.counts), summary)
    if waiting and not modes:
        return RunRow(run, f"{waiting} pending", "wait", summary)
    return RunRow(run, *describe_running_state(modes, run), summary)
