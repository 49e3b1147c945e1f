"""The Stop page: what this person may stop, what is stopped, and what that means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from journal.errors import DomainError, NotFound
from policies.models import Person
from reviews import permissions, stops
from reviews.choices import OPEN, ExecutionStatus, Scope, StopMode
from reviews.models import ApprovalRequest, Execution, Stop
from reviews.permissions import Permission

from . import log, visible

NAMES = {
    Scope.THREAD: "This run",
    Scope.AGENT: "This agent, all its runs",
    Scope.TOOL: "This tool, whoever uses it",
    Scope.REVIEWER: "This reviewer's decisions",
    Scope.EVERYTHING: "Everything, all agents",
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


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    label: str
    key: str = ""
    note: str = ""
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Switch:
    """One Stop row in force."""

    id: int
    said: str
    mode: str
    by: str
    at: datetime
    reason: str
    asked: bool  # a first person has asked to lift it
    may_lift: bool
    running: int

    @property
    def state(self) -> str:
        """Halted only when nothing in scope is running any more."""
        if self.mode == StopMode.PAUSED:
            return "Paused"
        return f"Halting, {self.running} still running" if self.running else "Halted"


@dataclass(frozen=True, slots=True)
class StopPage:
    scopes: list[Choice]
    modes: list[Choice]
    switches: list[Switch]
    running: list[Execution] = field(default_factory=list)
    waiting: int = 0
    agent: str = ""
    thread: str = ""


def page(
    person: Person,
    *,
    agent: str = "",
    thread: str = "",
    tool: str = "",
    owns: bool = False,
    target: str = "",
    mode: str = "",
) -> StopPage:
    """What can be stopped from here. `owns`: the person owns the agent; `target` and
    `mode` are what was chosen, else the narrowest scope and the strictest mode.

    Raises NotFound for an agent's or run's page that is not this person's to see.
    """
    if agent and not owns and not _sees(person, agent, thread):
        raise NotFound
    scopes = _scopes(person, agent, thread, tool, owns)
    return StopPage(
        scopes=_chosen(scopes, target),
        modes=_modes(person, scopes, owns, mode),
        switches=in_force(person),
        running=_running(agent, thread) if agent else [],
        waiting=_waiting(agent, thread) if agent else 0,
        agent=agent,
        thread=thread,
    )


def _sees(person: Person, agent: str, thread: str) -> bool:
    """Whether anything this run or agent proposed is this person's to see."""
    if permissions.allowed(person, Permission.SEE_ALL):
        return True
    run = {"agent": agent} | ({"thread": thread} if thread else {})
    return visible.proposals(person).filter(**run).exists()


def _scopes(
    person: Person, agent: str, thread: str, tool: str, owns: bool
) -> list[Choice]:
    keys = {
        Scope.THREAD: stops.thread_key(agent, thread) if agent and thread else None,
        Scope.AGENT: agent or None,
        Scope.TOOL: tool or None,
        Scope.EVERYTHING: "",
    }
    return [
        Choice(scope.value, NAMES[scope], key)
        for scope, key in keys.items()
        if key is not None and _may(person, scope, owns)
    ]


def _chosen(scopes: list[Choice], target: str) -> list[Choice]:
    values = [f"{one.value}:{one.key}" for one in scopes]
    at = values.index(target) if target in values else 0
    return [replace(one, chosen=n == at) for n, one in enumerate(scopes)]


def _modes(person: Person, scopes: list[Choice], owns: bool, mode: str) -> list[Choice]:
    allowed = [
        one
        for one in MODES
        if any(may_stop(person, Scope(s.value), one, owns=owns) for s in scopes)
    ]
    strictest = allowed[-1] if allowed else ""
    chosen = mode if mode in allowed else strictest
    return [Choice(m.value, *_named(m), chosen=m == chosen) for m in allowed]


def _named(mode: StopMode) -> tuple[str, str, str]:
    label, note = MODES[mode]
    return label, "", note


def offers(page_: StopPage, scope: Scope, key: str) -> bool:
    """Whether the page lets its person stop this: a key is never taken on trust."""
    return any((one.value, one.key) == (scope.value, key) for one in page_.scopes)


def _may(person: Person, scope: Scope, owns: bool) -> bool:
    return any(may_stop(person, scope, mode, owns=owns) for mode in StopMode)


def may_stop(person: Person, scope: Scope, mode: StopMode, *, owns: bool) -> bool:
    """The operation's own check, as an answer."""
    try:
        permissions.check_can_stop(person, scope, mode, owns=owns)
    except DomainError:
        return False
    return True


def in_force(person: Person) -> list[Switch]:
    """Every switch that is off now and concerns this person, newest first."""
    found = Stop.objects.filter(lifted_at__isnull=True).order_by("-at")
    rows = [row for row in found if _concerns(person, row)]
    names = log.access.names_of(
        [row.by for row in rows]
        + [row.key for row in rows if row.scope == Scope.REVIEWER]
    )
    lifts = permissions.allowed(person, Permission.LIFT)
    return [_switch(row, names, lifts, person) for row in rows]


def _concerns(person: Person, row: Stop) -> bool:
    """Tools and everything are everybody's; runs, agents and people are not."""
    scope = Scope(row.scope)
    if scope in {Scope.EVERYTHING, Scope.TOOL}:
        return True
    if scope is Scope.REVIEWER:
        own = row.key == person.public_id
        return own or permissions.allowed(person, Permission.SEE_ALL)
    agent, _, thread = row.key.partition("/")
    return _sees(person, agent, thread)


def _switch(row: Stop, names: dict[str, str], lifts: bool, person: Person) -> Switch:
    scope = Scope(row.scope)
    key = names.get(row.key, row.key) if scope is Scope.REVIEWER else row.key
    said = {
        Scope.THREAD: f"Run {key}",
        Scope.AGENT: f"Agent {key}",
        Scope.TOOL: f"Tool {key}",
        Scope.REVIEWER: f"Decisions of {key}",
        Scope.EVERYTHING: "Everything",
    }[scope]
    return Switch(
        id=row.pk,
        said=said,
        mode=row.mode,
        by=names.get(row.by, "Someone"),
        at=row.at,
        reason=row.reason,
        asked=bool(row.lift_asked_by),
        may_lift=lifts and row.lift_asked_by != person.public_id,
        running=_claimed(scope, row.key),
    )


def _claimed(scope: Scope, key: str) -> int:
    claimed = Execution.objects.filter(status=ExecutionStatus.CLAIMED)
    agent, _, thread = key.partition("/")
    return {
        Scope.THREAD: claimed.filter(proposal__agent=agent, proposal__thread=thread),
        Scope.AGENT: claimed.filter(proposal__agent=key),
        Scope.TOOL: claimed.filter(proposal__tool_name=key),
        Scope.REVIEWER: claimed.none(),
        Scope.EVERYTHING: claimed,
    }[scope].count()


def _of_run(agent: str, thread: str) -> dict[str, str]:
    return {"proposal__agent": agent} | ({"proposal__thread": thread} if thread else {})


def _running(agent: str, thread: str) -> list[Execution]:
    unfinished = [ExecutionStatus.QUEUED, ExecutionStatus.CLAIMED]
    found = Execution.objects.filter(status__in=unfinished, **_of_run(agent, thread))
    return list(found.select_related("proposal").order_by("queued_at")[:20])


def _waiting(agent: str, thread: str) -> int:
    found = ApprovalRequest.objects.filter(status__in=OPEN, **_of_run(agent, thread))
    return found.count()
