"""The Stop page: what this person may stop from here, and what each choice would do.

A Stop page that names no run, agent or tool also lists the runs and tools at work, each
with a link to its own Stop page, so that the right scope is two clicks away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode

from journal.clock import time_of_day
from journal.errors import DomainError, NotFound
from policies.choices import Role
from policies.models import Person
from reviews import permissions
from reviews.choices import OPEN, STOP_REASONS, Scope, StopMode
from reviews.desk.components import in_flight, visibility
from reviews.desk.components import switches as components_switches
from reviews.desk.components.in_flight import UNFINISHED, Action, Load, Target
from reviews.desk.components.switches import Switch
from reviews.models import Execution
from reviews.stops import stops

from . import revoke
from .revoke import Reviewer

MOST_READ = 200  # newest rows of the work under way
MOST_NAMED = 8
Row = tuple[datetime, str, str, str]  # since, agent, thread, tool
One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class Place:
    """A run or a tool with the URL of its Stop page. `agent` is set for a run."""

    name: str
    url: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Narrower:
    """The runs and tools at work that could be stopped instead of everything."""

    runs: list[Place] = field(default_factory=list)
    tools: list[Place] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.runs or self.tools)


def at_work(person: Person, *, runs: bool, tools: bool, own: bool) -> Narrower:
    """List the runs and tools at work that this person may see, newest first.

    Two queries. `runs` and `tools` say which of them this person may stop or pause;
    `own` adds the runs of their own agents.
    """
    if not (runs or tools or own):
        return Narrower()
    rows = _under_way(person, only_own=not (runs or tools))
    threads = _first(rows, lambda row: row[1:3]) if runs or own else []
    return Narrower(
        runs=[_run(*one) for one in threads],
        tools=[_tool(one) for one in _first(rows, lambda row: row[3])] if tools else [],
    )


def _under_way(person: Person, *, only_own: bool) -> list[Row]:
    asked = visibility.requests(person).filter(status__in=OPEN)
    mine = visibility.proposals(person)
    if only_own:
        asked = asked.filter(barred__contains=[person.public_id])
        mine = mine.filter(barred__contains=[person.public_id])
    queued = Execution.objects.filter(
        status__in=UNFINISHED, proposal__in=mine.values("pk")
    )
    rows = [*_newest(queued, "queued_at"), *_newest(asked, "opened_at")]
    return sorted(rows, key=lambda row: row[0], reverse=True)


def _newest(found: QuerySet[Any], since: str) -> Iterable[Row]:
    names = ("proposal__agent", "proposal__thread", "proposal__tool_name")
    return found.order_by(f"-{since}").values_list(since, *names)[:MOST_READ]


def _first(rows: Iterable[Row], part: Callable[[Row], One]) -> list[One]:
    """List the distinct parts of the rows in order, at most MOST_NAMED."""
    return list(dict.fromkeys(map(part, rows)))[:MOST_NAMED]


def _run(agent: str, thread: str) -> Place:
    return Place(thread, reverse("agents:stop_thread", args=[agent, thread]), agent)


def _tool(name: str) -> Place:
    return Place(name, f"{reverse('reviews:stop')}?{urlencode({'tool': name})}")


NAMES = {
    Scope.THREAD: "This run",
    Scope.AGENT: "This agent, all its runs",
    Scope.TOOL: "This tool, whoever uses it",
    Scope.EVERYTHING: "All agents, everything",
}
MODES = {
    StopMode.PAUSED: (
        "Pause",
        "What waits is kept: requests stay open, nothing runs.",
    ),
    StopMode.STOPPED: (
        "Stop",
        "What waits is withdrawn and refused. What runs may still finish.",
    ),
}
MOST_AGENTS = 12  # offered where the page names no run or agent


@dataclass(frozen=True, slots=True)
class Choice:
    """One radio button for a scope or a mode.

    `load` is the work under way in the scope, `note` the switch that already holds it.
    """

    value: str
    label: str
    key: str = ""
    note: str = ""
    chosen: bool = False
    load: Load | None = None
    scope: str = ""
    done: bool = False  # already stopped, so it cannot be selected


@dataclass(frozen=True, slots=True)
class StopPage:
    """The page: scopes and modes to choose from, work under way and active switches."""

    scopes: list[Choice]
    modes: list[Choice]
    switches: list[Switch]
    actions: list[Action] = field(default_factory=list)
    agent: str = ""
    thread: str = ""
    tool: str = ""
    reviewers: list[Reviewer] = field(default_factory=list)
    narrower: Narrower = field(default_factory=Narrower)
    reasons: tuple[tuple[str, str], ...] = tuple(STOP_REASONS.items())

    @property
    def stops_all(self) -> bool:
        return any(one.scope == Scope.EVERYTHING for one in self.scopes)

    @property
    def hidden(self) -> int:
        """How many actions are under way in the widest scope and not on this page."""
        loads = [one.load for one in self.scopes if one.load]
        most = max((one.queued + one.running for one in loads), default=0)
        return max(most - len(self.actions), 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the page was opened from, and what is chosen.

    `owns` says that the agent is this person's. Without `target` and `mode` the page
    preselects the narrowest scope and the strictest mode.
    """

    agent: str = ""
    thread: str = ""
    tool: str = ""
    owns: bool = False
    target: str = ""
    mode: str = ""

    @property
    def named(self) -> list[Target]:
        """The scopes that this page names, narrowest first."""
        run = stops.thread_key(self.agent, self.thread)
        keys = {
            Scope.THREAD: run if self.agent and self.thread else "",
            Scope.AGENT: self.agent,
            Scope.TOOL: self.tool,
        }
        return [(scope, key) for scope, key in keys.items() if key]


def page(person: Person, asked: Asked) -> StopPage:
    """Build the page of what can be stopped from here.

    Raises NotFound for the page of a run or agent that this person may not see.
    """
    check_seen(person, asked)
    targets = _targets(person, asked)
    off = components_switches.in_force(person)
    return StopPage(
        scopes=_scopes(targets, asked.target, off, _stoppable(person, targets, asked)),
        modes=_modes(person, targets, asked),
        switches=off,
        actions=_actions(person, targets),
        agent=asked.agent,
        thread=asked.thread,
        tool=asked.tool,
        reviewers=[] if asked.named else revoke.reviewers(person),
        narrower=Narrower() if asked.named else _narrower(person),
    )


def _narrower(person: Person) -> Narrower:
    return at_work(
        person,
        runs=_may(person, Scope.THREAD, owns=False),
        tools=_may(person, Scope.TOOL, owns=False),
        own=Role.OWNER in permissions.roles_of(person),
    )


def check_seen(person: Person, asked: Asked) -> None:
    """Raises NotFound for a run or agent that this person may not see."""
    agent, thread = asked.agent, asked.thread
    if agent and not asked.owns and not components_switches.sees(person, agent, thread):
        raise NotFound


def _targets(person: Person, asked: Asked) -> list[Target]:
    named = asked.named or [(Scope.AGENT, one) for one in _busy(person)]
    wanted = [*named, (Scope.EVERYTHING, "")]
    return [one for one in wanted if _may(person, one[0], asked.owns)]


def _busy(person: Person) -> list[str]:
    """The agents at work, so that Stop works from every page; only for people who may
    stop any agent and therefore see all of them."""
    if not _may(person, Scope.AGENT, owns=False):
        return []
    return in_flight.agents(MOST_AGENTS)


def _stoppable(person: Person, targets: list[Target], asked: Asked) -> set[str]:
    """The targets that this person may stop, not only pause. A target that is already
    paused can be selected only if it is among them."""
    return {
        f"{scope}:{key}"
        for scope, key in targets
        if may_stop(person, scope, StopMode.STOPPED, owns=asked.owns)
    }


def _scopes(
    targets: list[Target], target: str, off: list[Switch], stoppable: set[str]
) -> list[Choice]:
    """The scopes as radio buttons, with the narrowest one that is not stopped
    preselected.

    If the chosen target has been stopped in the meantime, none is selected: the person
    must choose again, so that they do not stop more than they meant.
    """
    loads = in_flight.loads(targets)
    held = {one.target: one for one in off}
    values = [f"{scope}:{key}" for scope, key in targets]
    free = [
        one
        for one in values
        if one not in held or (held[one].paused and one in stoppable)
    ]
    wanted = target or next(iter(free), "")
    chosen = wanted if wanted in free else ""
    return [
        Choice(
            value=value,
            label="This agent" if _one_of_many(targets, one) else NAMES[one[0]],
            key=one[1],
            note=_already(held.get(value)),
            chosen=value == chosen,
            load=loads[one],
            scope=one[0].value,
            done=value not in free,
        )
        for value, one in zip(values, targets, strict=True)
    ]


def _already(held: Switch | None) -> str:
    if held is None:
        return ""
    word = "Paused" if held.paused else "Stopped"
    return f"{word} already, since {time_of_day(held.at)}"


def _one_of_many(targets: list[Target], target: Target) -> bool:
    return [scope for scope, _ in targets].count(target[0]) > 1


def _actions(person: Person, targets: list[Target]) -> list[Action]:
    """The work under way in the widest scope other than everything, or in everything if
    it is the only scope."""
    narrow = [one for one in targets if one[0] is not Scope.EVERYTHING]
    widest = (narrow or targets)[-1:]
    if not widest or _one_of_many(targets, widest[0]):
        return []
    return in_flight.actions(person, *widest[0])


def _modes(person: Person, targets: list[Target], asked: Asked) -> list[Choice]:
    allowed = [
        mode
        for mode in MODES
        if any(may_stop(person, scope, mode, owns=asked.owns) for scope, _ in targets)
    ]
    strictest = allowed[-1] if allowed else ""
    chosen = asked.mode if asked.mode in allowed else strictest
    return [_mode(mode, chosen=mode == chosen) for mode in allowed]


def _mode(mode: StopMode, *, chosen: bool) -> Choice:
    label, note = MODES[mode]
    return Choice(mode.value, label, note=note, chosen=chosen)


def offers(person: Person, asked: Asked, target: Target) -> bool:
    """Whether this person may stop `target` from this page. The key comes from the
    browser and is never trusted; a target that the page no longer lists can still be
    stopped."""
    scope, key = target
    if scope is Scope.EVERYTHING:
        return not key
    if asked.named or scope is not Scope.AGENT:
        return target in asked.named
    return components_switches.sees(person, key)


def _may(person: Person, scope: Scope, owns: bool) -> bool:
    return any(may_stop(person, scope, mode, owns=owns) for mode in StopMode)


def may_stop(person: Person, scope: Scope, mode: StopMode, *, owns: bool) -> bool:
    """Whether the operation's own check would pass."""
    try:
        permissions.check_can_stop(person, scope, mode, owns=owns)
    except DomainError:
        return False
    return True
