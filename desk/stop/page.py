"""The Stop page: what this person may stop from here, and what each choice would do.

A Stop page that names no run, agent or tool also lists the runs and tools at work, each
with a link to its own Stop page, so that the right scope is two clicks away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

from django.db.models import Max, QuerySet

from agents.models import Agent
from journal.clock import format_time
from journal.errors import DomainError, NotFound
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import IN_FLIGHT, STOP_REASON_LABELS, Scope, StopMode
from reviews.models import IS_OPEN, Execution
from reviews.stops import stops

from ..components import in_flight, visibility
from ..components import switches as components_switches
from ..components.in_flight import (
    InFlightAction,
    InFlightCounts,
    ScopeTarget,
)
from ..components.switches import SwitchLine
from . import revoke

MOST_READ = 200  # the newest runs, tools and agents of the work under way
MOST_NAMED = 8  # of each, before the page lists all
WorkRow = tuple[datetime, str, str, str]  # since, agent, thread, tool
One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class NarrowerStops:
    """The runs and tools at work that could be stopped instead of everything. A run is
    its agent and its name."""

    runs: list[tuple[str, str]] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    more_runs: int = 0  # not listed here
    more_tools: int = 0
    cut: bool = False  # there may be more than were counted

    def __bool__(self) -> bool:
        return bool(self.runs or self.tools)


def list_narrower_stops(
    person: Person, *, runs: bool, tools: bool, own: bool, most: int = MOST_NAMED
) -> NarrowerStops:
    """List the runs and tools at work that this person may see, newest first, at most
    `most` of each. Two queries. `runs` and `tools` say which of them this person may
    stop or pause; `own` adds the runs of their own agents."""
    if not (runs or tools or own):
        return NarrowerStops()
    rows = _list_work(person, only_own=not (runs or tools))
    threads = _list_distinct(rows, lambda row: row[1:3]) if runs or own else []
    names = _list_distinct(rows, lambda row: row[3]) if tools else []
    return NarrowerStops(
        runs=threads[:most],
        tools=names[:most],
        more_runs=len(threads[most:]),
        more_tools=len(names[most:]),
        cut=len(rows) >= MOST_READ,
    )


def _list_work(person: Person, *, only_own: bool) -> list[WorkRow]:
    asked = visibility.select_visible_requests(person).filter(IS_OPEN)
    visible = visibility.select_visible_proposals(person)
    if only_own:
        asked = asked.filter(barred__contains=[person.public_id])
        visible = visible.filter(barred__contains=[person.public_id])
    queued = Execution.objects.filter(
        status__in=IN_FLIGHT, proposal__in=visible.values("pk")
    )
    rows = [*_list_newest(queued, "queued_at"), *_list_newest(asked, "opened_at")]
    return sorted(rows, key=lambda row: row[0], reverse=True)


def _list_newest(rows: QuerySet[Any], since: str) -> Iterable[WorkRow]:
    names = ("proposal__agent", "proposal__thread", "proposal__tool_name")
    newest = rows.order_by().values(*names).annotate(since=Max(since))
    newest = newest.order_by("-since")
    return cast("Iterable[WorkRow]", newest.values_list("since", *names)[:MOST_READ])


def _list_distinct(
    rows: Iterable[WorkRow], part: Callable[[WorkRow], One]
) -> list[One]:
    return list(dict.fromkeys(map(part, rows)))


SCOPE_NAMES = {
    Scope.THREAD: "This run",
    Scope.AGENT: "This agent and all its runs",
    Scope.TOOL: "This tool, for all agents",
    Scope.EVERYTHING: "Everything, all agents",
}
MODE_WORDS = {
    StopMode.PAUSED: (
        "Pause",
        "Pending requests and queued actions are kept. Nothing new starts.",
    ),
    StopMode.STOPPED: (
        "Stop",
        "Pending requests are withdrawn and queued actions cancelled. Running actions"
        " may still finish.",
    ),
}
MOST_AGENTS = 12  # offered where the page names no run or agent


@dataclass(frozen=True, slots=True)
class StopChoice:
    """One radio button for a scope or a mode.

    `load` is the work under way in the scope, `note` the switch that already holds it.
    """

    value: str
    label: str
    key: str = ""
    note: str = ""
    chosen: bool = False
    load: InFlightCounts | None = None
    scope: str = ""
    done: bool = False  # already stopped, so it cannot be selected


@dataclass(frozen=True, slots=True)
class StopPage:
    """The page: scopes and modes to choose from, work under way and active switches."""

    scopes: list[StopChoice]
    modes: list[StopChoice]
    switches: list[SwitchLine]
    actions: list[InFlightAction] = field(default_factory=list)
    agent: str = ""
    thread: str = ""
    tool: str = ""
    reviewers: list[Person] = field(default_factory=list)
    narrower: NarrowerStops = field(default_factory=NarrowerStops)
    more_agents: int = 0  # at work, and not among the scopes
    whole: bool = False  # lists all of what is at work
    reasons: tuple[tuple[str, str], ...] = tuple(STOP_REASON_LABELS.items())

    @property
    def stops_all(self) -> bool:
        return any(choice.scope == Scope.EVERYTHING for choice in self.scopes)

    @property
    def only_pauses(self) -> bool:
        """Whether this person may pause what the page names and not stop it."""
        return [choice.value for choice in self.modes] == [StopMode.PAUSED]

    @property
    def hidden(self) -> int:
        """How many actions are under way in the widest scope and not on this page."""
        loads = [choice.load for choice in self.scopes if choice.load]
        most = max((load.queued + load.running for load in loads), default=0)
        return max(most - len(self.actions), 0)


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Where the page was opened from, and what is chosen.

    `owns` says that the agent is this person's, `whole` that all of what is at work is
    asked for. Without `target` and `mode` the page preselects the narrowest scope that
    it names, and the strictest mode.
    """

    agent: str = ""
    thread: str = ""
    tool: str = ""
    owns: bool = False
    target: str = ""
    mode: str = ""
    whole: bool = False

    @property
    def most(self) -> int:
        """How many agents, runs and tools the page lists of each at most."""
        return MOST_READ if self.whole else MOST_NAMED

    @property
    def named(self) -> list[ScopeTarget]:
        """The scopes that this page names, narrowest first."""
        run = stops.build_thread_key(self.agent, self.thread)
        keys = {
            Scope.THREAD: run if self.agent and self.thread else "",
            Scope.AGENT: self.agent,
            Scope.TOOL: self.tool,
        }
        return [(scope, key) for scope, key in keys.items() if key]


def build_stop_page(person: Person, asked: StopRequest) -> StopPage:
    """Build the page of what can be stopped from here. Raises NotFound for the page of
    a run or agent that this person may not see."""
    check_visible(person, asked)
    agents = [] if asked.named else _list_agents(person)
    targets = _list_targets(person, asked, agents[: max(asked.most, MOST_AGENTS)])
    off = components_switches.list_switches_in_force(person)
    return StopPage(
        scopes=_list_scope_choices(
            in_flight.count_in_flight(targets, person.public_id),
            asked,
            off,
            _list_stoppable(person, targets, asked),
        ),
        modes=_list_mode_choices(person, targets, asked),
        switches=off,
        actions=_list_actions(person, targets),
        agent=asked.agent,
        thread=asked.thread,
        tool=asked.tool,
        reviewers=[] if asked.named else revoke.list_reviewers(person),
        narrower=NarrowerStops()
        if asked.named
        else _offer_narrower(person, asked.most),
        more_agents=len(agents[max(asked.most, MOST_AGENTS) :]),
        whole=asked.whole,
    )


def _offer_narrower(person: Person, most: int) -> NarrowerStops:
    return list_narrower_stops(
        person,
        runs=_may_switch(person, Scope.THREAD, owns=False),
        tools=_may_switch(person, Scope.TOOL, owns=False),
        own=Role.OWNER in permissions.roles_of(person),
        most=most,
    )


def check_visible(person: Person, asked: StopRequest) -> None:
    """Raises NotFound for a run or agent that this person may not see."""
    agent, thread = asked.agent, asked.thread
    if (
        agent
        and not asked.owns
        and not components_switches.may_see_agent(person, agent, thread)
    ):
        raise NotFound


def _list_targets(
    person: Person, asked: StopRequest, agents: Iterable[str]
) -> list[ScopeTarget]:
    named = asked.named or [(Scope.AGENT, agent) for agent in agents]
    wanted = [*named, (Scope.EVERYTHING, "")]
    return [target for target in wanted if _may_switch(person, target[0], asked.owns)]


def _list_agents(person: Person) -> list[str]:
    """The agents, those at work first, so that Stop works from every page; only for
    people who may stop any agent and therefore see all of them."""
    if not _may_switch(person, Scope.AGENT, owns=False):
        return []
    busy = in_flight.list_busy_agents(MOST_READ)
    others = Agent.objects.exclude(slug__in=busy).order_by("slug")
    return [*busy, *others.values_list("slug", flat=True)[: MOST_READ - len(busy)]]


def _list_stoppable(
    person: Person, targets: list[ScopeTarget], asked: StopRequest
) -> set[str]:
    """The targets that this person may stop, not only pause. A target that is already
    paused can be selected only if it is among them."""
    return {
        f"{scope}:{key}"
        for scope, key in targets
        if may_stop(person, scope, StopMode.STOPPED, owns=asked.owns)
    }


def _list_scope_choices(
    loads: Mapping[ScopeTarget, InFlightCounts],
    asked: StopRequest,
    off: list[SwitchLine],
    stoppable: set[str],
) -> list[StopChoice]:
    """The scopes as radio buttons. Where the page names something, the narrowest one
    that is not stopped is preselected.

    If the chosen target has been stopped in the meantime, none is selected: the person
    must choose again, so that they do not stop more than they meant.
    """
    targets = list(loads)
    held = {switch.target: switch for switch in off}
    values = [f"{scope}:{key}" for scope, key in targets]
    free = [
        value
        for value in values
        if value not in held or (held[value].paused and value in stoppable)
    ]
    wanted = asked.target or (next(iter(free), "") if asked.named else "")
    chosen = wanted if wanted in free else ""
    return [
        StopChoice(
            value=value,
            label="Agent"
            if _is_one_of_many(targets, (scope, key))
            else SCOPE_NAMES[scope],
            key=key,
            note=_describe_switch(held.get(value)),
            chosen=value == chosen,
            load=load,
            scope=scope.value,
            done=value not in free,
        )
        for value, ((scope, key), load) in zip(values, loads.items(), strict=True)
    ]


def _describe_switch(held: SwitchLine | None) -> str:
    return f"{held.word} since {format_time(held.at)}" if held else ""


def _is_one_of_many(targets: list[ScopeTarget], target: ScopeTarget) -> bool:
    return [scope for scope, _ in targets].count(target[0]) > 1


def _list_actions(person: Person, targets: list[ScopeTarget]) -> list[InFlightAction]:
    """The work under way in the widest scope other than everything, or in everything if
    it is the only scope."""
    narrow = [target for target in targets if target[0] is not Scope.EVERYTHING]
    widest = (narrow or targets)[-1:]
    if not widest or _is_one_of_many(targets, widest[0]):
        return []
    return in_flight.list_actions(person, *widest[0])


def _list_mode_choices(
    person: Person, targets: list[ScopeTarget], asked: StopRequest
) -> list[StopChoice]:
    allowed = [
        mode
        for mode in MODE_WORDS
        if any(may_stop(person, scope, mode, owns=asked.owns) for scope, _ in targets)
    ]
    strictest = allowed[-1] if allowed else ""
    chosen = asked.mode if asked.mode in allowed else strictest
    return [_build_mode_choice(mode, chosen=mode == chosen) for mode in allowed]


def _build_mode_choice(mode: StopMode, *, chosen: bool) -> StopChoice:
    label, note = MODE_WORDS[mode]
    return StopChoice(mode.value, label, note=note, chosen=chosen)


def is_offered(person: Person, asked: StopRequest, target: ScopeTarget) -> bool:
    """Whether this person may stop `target` from this page. The key comes from the
    browser and is never trusted; a target that the page no longer lists can still be
    stopped."""
    scope, key = target
    if scope is Scope.EVERYTHING:
        return not key
    if asked.named or scope is not Scope.AGENT:
        return target in asked.named
    return components_switches.may_see_agent(person, key)


def _may_switch(person: Person, scope: Scope, owns: bool) -> bool:
    return any(may_stop(person, scope, mode, owns=owns) for mode in StopMode)


def may_stop(person: Person, scope: Scope, mode: StopMode, *, owns: bool) -> bool:
    """Whether the operation's own check would pass."""
    try:
        permissions.check_can_stop(person, scope, mode, owns=owns)
    except DomainError:
        return False
    return True
