"""The Stop page: what this person may stop from here, and what each choice does to what
is under way.

Runs and tools at work, each with its own Stop page: so that from a page that names
none of them the one that is meant is two clicks away.
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

MOST_READ = 200  # of what is under way, the newest
MOST_NAMED = 8
Row = tuple[datetime, str, str, str]  # since, agent, thread, tool
One = TypeVar("One")


@dataclass(frozen=True, slots=True)
class Place:
    """A run or a tool, by its name, and its Stop page. `agent` of a run."""

    name: str
    url: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Narrower:
    runs: list[Place] = field(default_factory=list)
    tools: list[Place] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.runs or self.tools)


def at_work(person: Person, *, runs: bool, tools: bool, own: bool) -> Narrower:
    """Of what this person may see those with something under way, the newest first;
    in two queries. `runs` and `tools`: what they may stop or pause; `own`: or the runs
    of their own agents."""
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
    """Each once, in the order in which they come."""
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
MOST_AGENTS = 12  # offered where no run or agent was asked for


@dataclass(frozen=True, slots=True)
class Choice:
    """One radio button. `load` is what is under way in its scope, `note` what holds it
    back already."""

    value: str
    label: str
    key: str = ""
    note: str = ""
    chosen: bool = False
    load: Load | None = None
    scope: str = ""
    done: bool = False  # stopped already: nothing more can be done to it here


@dataclass(frozen=True, slots=True)
class StopPage:
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
        """How much is under way in the widest scope and not on this page."""
        loads = [one.load for one in self.scopes if one.load]
        most = max((one.queued + one.running for one in loads), default=0)
        return max(most - len(self.actions), 0)


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the page was opened from. `owns`: the agent is this person's; `target` and
    `mode` are what was chosen, else the narrowest scope and the strictest mode."""

    agent: str = ""
    thread: str = ""
    tool: str = ""
    owns: bool = False
    target: str = ""
    mode: str = ""

    @property
    def named(self) -> list[Target]:
        """The scopes that this place names, the narrowest first."""
        run = stops.thread_key(self.agent, self.thread)
        keys = {
            Scope.THREAD: run if self.agent and self.thread else "",
            Scope.AGENT: self.agent,
            Scope.TOOL: self.tool,
        }
        return [(scope, key) for scope, key in keys.items() if key]


def page(person: Person, asked: Asked) -> StopPage:
    """What can be stopped from here.

    Raises NotFound for an agent's or run's page that is not this person's to see.
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
    """Raises NotFound for a run or agent that is not this person's to see."""
    agent, thread = asked.agent, asked.thread
    if agent and not asked.owns and not components_switches.sees(person, agent, thread):
        raise NotFound


def _targets(person: Person, asked: Asked) -> list[Target]:
    named = asked.named or [(Scope.AGENT, one) for one in _busy(person)]
    wanted = [*named, (Scope.EVERYTHING, "")]
    return [one for one in wanted if _may(person, one[0], asked.owns)]


def _busy(person: Person) -> list[str]:
    """Agents at work, so that Stop works from every page: for those who may stop any
    agent, and so see all of them."""
    if not _may(person, Scope.AGENT, owns=False):
        return []
    return in_flight.agents(MOST_AGENTS)


def _stoppable(person: Person, targets: list[Target], asked: Asked) -> set[str]:
    """What they may stop: of what is paused already, all that they can still do."""
    return {
        f"{scope}:{key}"
        for scope, key in targets
        if may_stop(person, scope, StopMode.STOPPED, owns=asked.owns)
    }


def _scopes(
    targets: list[Target], target: str, off: list[Switch], stoppable: set[str]
) -> list[Choice]:
    """The narrowest that is not stopped already is chosen, if nothing was: who chose
    what is stopped by now chooses anew, lest they stop more than they meant."""
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
    """What is under way in the widest scope but all of it, else in that."""
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
    """Whether the page lets its person stop this: a key is never taken on trust, but
    what the page would no longer list is stopped all the same."""
    scope, key = target
    if scope is Scope.EVERYTHING:
        return not key
    if asked.named or scope is not Scope.AGENT:
        return target in asked.named
    return components_switches.sees(person, key)


def _may(person: Person, scope: Scope, owns: bool) -> bool:
    return any(may_stop(person, scope, mode, owns=owns) for mode in StopMode)


def may_stop(person: Person, scope: Scope, mode: StopMode, *, owns: bool) -> bool:
    """The operation's own check, as an answer."""
    try:
        permissions.check_can_stop(person, scope, mode, owns=owns)
    except DomainError:
        return False
    return True
