"""Runs and tools at work, each with its own Stop page: so that from a page that names
none of them the one that is meant is two clicks away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode

from policies.models import Person
from reviews.choices import OPEN
from reviews.desk.components import visibility
from reviews.desk.components.in_flight import UNFINISHED
from reviews.models import Execution

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
