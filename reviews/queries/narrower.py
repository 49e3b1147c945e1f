"""Runs and tools at work, each with its own Stop page: so that from a page that names
none of them the one that is meant is two clicks away."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from django.urls import reverse
from django.utils.http import urlencode

from policies.models import Person
from reviews.choices import OPEN
from reviews.models import Execution

from . import visible
from .in_flight import UNFINISHED

MOST_READ = 200  # of what is under way, the newest
MOST_NAMED = 8
Row = tuple[str, str, str]  # agent, thread, tool
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


def at_work(person: Person, *, runs: bool, tools: bool) -> Narrower:
    """Of what this person may see those with something under way, the newest first;
    in two queries. `runs` and `tools`: what they may stop or pause."""
    rows = _under_way(person) if runs or tools else []
    return Narrower(
        runs=[_run(*one) for one in _first(rows, lambda row: row[:2])] if runs else [],
        tools=[_tool(one) for one in _first(rows, lambda row: row[2])] if tools else [],
    )


def _under_way(person: Person) -> list[Row]:
    asked = visible.requests(person).filter(status__in=OPEN).order_by("-opened_at")
    mine = visible.proposals(person).values("pk")
    queued = Execution.objects.filter(status__in=UNFINISHED, proposal__in=mine)
    names = ("proposal__agent", "proposal__thread", "proposal__tool_name")
    runs = queued.order_by("-queued_at").values_list(*names)[:MOST_READ]
    return [*runs, *asked.values_list(*names)[:MOST_READ]]


def _first(rows: Iterable[Row], part: Callable[[Row], One]) -> list[One]:
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(map(part, rows)))[:MOST_NAMED]


def _run(agent: str, thread: str) -> Place:
    return Place(thread, reverse("agents:stop_thread", args=[agent, thread]), agent)


def _tool(name: str) -> Place:
    return Place(name, f"{reverse('reviews:stop')}?{urlencode({'tool': name})}")
