"""Stops and pauses in force: by whom, why, and who may lift them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import Q
from django.urls import reverse

from policies import solo
from policies.models import Person
from reviews import permissions
from reviews.choices import SCOPE_NOUNS, Scope, StopMode
from reviews.models import Stop
from reviews.roles import Permission
from reviews.stops import scope as stop_work
from reviews.stops import stops
from reviews.stops.stops import StoppableAction

from . import in_flight, log_lines, visibility
from .banners import SwitchBanner
from .in_flight import ScopeTarget

Switched = TypeVar("Switched", Stop, SwitchBanner)


@dataclass(frozen=True, slots=True)
class SwitchLine:
    id: int
    target: str  # as the Stop page's choices name it
    subject: str
    paused: bool
    by: Person | str
    at: datetime
    reason: str
    asked: bool  # a first person asked to lift it, and a second must confirm
    asked_by: Person | str
    asked_me: bool  # that first person is the reader
    everything: bool
    may_lift: bool
    running: int
    lifted_at: datetime | None
    lifted_by: Person | str
    reviewer: Person | None = None  # whose decisions are stopped
    agent: str = ""

    @property
    def word(self) -> str:
        """The state in one word; "Stopped" only when nothing in its scope still
        runs."""
        if self.lifted_at:
            return "Resumed"
        if self.paused:
            return "Paused"
        return "Stopping" if self.running else "Stopped"

    @property
    def state(self) -> str:
        """The state in words, with what still runs while it is stopping."""
        running = f", {self.running} still running" if self.word == "Stopping" else ""
        return f"{self.word}{running}"

    @property
    def resumed_by(self) -> str:
        """Who may resume it, for a reader who may not; empty for others."""
        if self.lifted_at or self.may_lift or self.asked:
            return ""
        if self.everything:
            return "Two supervisors or administrators can resume it together."
        return "A supervisor or an administrator can resume it."

    @property
    def url(self) -> str:
        return reverse("reviews:stopped", args=[self.id])


def list_switches_in_force(person: Person) -> list[SwitchLine]:
    """Every stop and pause in force that concerns this person, newest first."""
    rows = list(Stop.objects.filter(lifted_at__isnull=True).order_by("-at"))
    return build_switch_lines(person, filter_for_person(person, rows))


def list_agent_switches(
    person: Person, agent: str, thread: str = ""
) -> list[SwitchLine]:
    """The stops and pauses over an agent or one of its runs, with those over
    everything. The caller has checked that the person may see the agent."""
    over = Q(scope=Scope.EVERYTHING) | Q(scope=Scope.AGENT, key=agent)
    if thread:
        over |= Q(scope=Scope.THREAD, key=stops.build_thread_key(agent, thread))
    return build_switch_lines(person, Stop.objects.filter(over, lifted_at__isnull=True))


def list_switches_over(person: Person, action: StoppableAction) -> list[SwitchBanner]:
    """The stops and pauses over one action that this person may see, newest first."""
    agent, thread, tool = action
    over = Q(scope=Scope.EVERYTHING) | Q(scope=Scope.AGENT, key=agent)
    over |= Q(scope=Scope.TOOL, key=tool)
    over |= Q(scope=Scope.THREAD, key=stops.build_thread_key(agent, thread))
    in_force = Stop.objects.filter(over, lifted_at__isnull=True).order_by("-at")
    rows = filter_for_person(person, list(in_force))
    people = _load_people(rows)
    return [
        SwitchBanner(
            id=row.pk,
            scope=row.scope,
            key=row.key,
            mode=row.mode,
            at=row.at,
            reason=row.reason,
            by=_name_author(row, people),
        )
        for row in rows
    ]


def build_switch_lines(person: Person, stopped: Iterable[Stop]) -> list[SwitchLine]:
    """Stop rows as lines: one query for the names, one for what still runs."""
    rows = list(stopped)
    people = _load_people(rows)
    off = [_to_target(row) for row in rows if row.lifted_at is None]
    running = in_flight.count_running(off)
    lifts = permissions.has_permission(person, Permission.LIFT)
    return [
        _build_switch_line(row, people, running.get(_to_target(row), 0), lifts, person)
        for row in rows
    ]


def _to_target(row: Stop | SwitchBanner) -> ScopeTarget:
    return Scope(row.scope), row.key


def _load_people(rows: list[Stop]) -> dict[str, Person]:
    wanted = [who for row in rows for who in (row.by, row.lift_asked_by, row.lifted_by)]
    wanted += [row.key for row in rows if row.scope == Scope.REVIEWER]
    return log_lines.load_people(wanted)


def _build_switch_line(
    row: Stop, people: dict[str, Person], running: int, lifts: bool, person: Person
) -> SwitchLine:
    open_ = row.lifted_at is None
    return SwitchLine(
        id=row.pk,
        target=f"{row.scope}:{row.key}",
        subject=_describe_target(row, people),
        paused=row.mode == StopMode.PAUSED,
        by=_name_author(row, people),
        at=row.at,
        reason=row.reason,
        asked=open_ and bool(row.lift_asked_by),
        asked_by=people.get(row.lift_asked_by, "Someone") if row.lift_asked_by else "",
        asked_me=row.lift_asked_by == person.public_id,
        everything=row.scope == Scope.EVERYTHING,
        may_lift=open_ and lifts and _may_lift(person, row),
        running=running,
        lifted_at=row.lifted_at,
        lifted_by=people.get(row.lifted_by, "Someone") if row.lifted_by else "",
        reviewer=people.get(row.key) if row.scope == Scope.REVIEWER else None,
        agent=row.key if row.scope == Scope.AGENT else "",
    )


def _name_author(row: Stop, people: dict[str, Person]) -> Person | str:
    return "Counterseal" if row.by == stops.SYSTEM else people.get(row.by, "Someone")


def _may_lift(person: Person, row: Stop) -> bool:
    """Not a person's own stop, nor one that they asked to lift (`stops.lift`); in solo
    mode any."""
    of_mine = row.scope == Scope.REVIEWER and row.key == person.public_id
    own = of_mine or row.lift_asked_by == person.public_id
    return not own or solo.is_solo()


def _describe_target(row: Stop, people: dict[str, Person]) -> str:
    if row.scope == Scope.REVIEWER:
        return f"Decisions of {people.get(row.key, row.key)}"
    return f"{SCOPE_NOUNS[Scope(row.scope)]} {row.key}".rstrip()


def filter_for_person(person: Person, rows: Sequence[Switched]) -> list[Switched]:
    """The rows that this person may see: tools and everything for all people; runs,
    agents and reviewers only for those concerned."""
    if permissions.has_permission(person, Permission.SEE_ALL):
        return list(rows)
    seen = _find_seen_keys(person, rows)
    return [row for row in rows if _concerns_person(person, row, seen)]


def _concerns_person(person: Person, row: Stop | SwitchBanner, seen: set[str]) -> bool:
    scope = Scope(row.scope)
    if scope is Scope.REVIEWER:
        return row.key == person.public_id
    return scope in {Scope.EVERYTHING, Scope.TOOL} or row.key in seen


def _find_seen_keys(person: Person, rows: Sequence[Stop | SwitchBanner]) -> set[str]:
    """The keys of these agents and runs of which this person may see something."""
    named = [row for row in rows if row.scope in {Scope.AGENT, Scope.THREAD}]
    if not named:
        return set()
    wanted = Q(pk__in=[])
    for row in named:
        wanted |= stop_work.build_scope_condition(*_to_target(row))
    proposals = visibility.select_visible_proposals(person).filter(wanted).order_by()
    pairs = set(proposals.values_list("agent", "thread").distinct())
    return {stops.build_thread_key(*pair) for pair in pairs} | {
        agent for agent, _ in pairs
    }


def may_see_agent(person: Person, agent: str, thread: str = "") -> bool:
    """Whether this person may see any proposal of the agent, or of its run."""
    if permissions.has_permission(person, Permission.SEE_ALL):
        return True
    run = {"agent": agent} | ({"thread": thread} if thread else {})
    return visibility.select_visible_proposals(person).filter(**run).exists()
