"""Tools that agents call and the active policy does not declare: their list, the draft
that declares one, and the agents that go on calling it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Max, Q, QuerySet

from agents import registry
from agents.models import Agent
from journal.errors import NotFound, PolicyViolation
from policies import active, callables, declarations, tools, undeclared_tools
from policies.declarations import Declaration
from policies.documents import TOOL_NAME, Document, UndeclaredTool, UnknownTools
from policies.models import Person, PolicyVersion, Tool
from policies.people import check_administrator, is_administrator
from reviews.models import Proposal, Revision

from ..components import visibility

NEWEST = 20_000
"""Of the proposals, the list counts only these, so that its cost has a bound."""
MOST_ROWS, MOST_AGENTS = 50, 3
UNKNOWN = "tool.unknown"  # the rule that blocks a call where no queue holds it


class UndeclaredRow(NamedTuple):
    """A row of the list: a tool's name, how many calls it had, the time of the last,
    and who called it."""

    name: str
    calls: int
    last: datetime
    agents: Sequence[str]
    more: int  # further agents


class Caller(NamedTuple):
    """An agent that called a tool before a draft declared it, and may not propose it
    yet."""

    agent: str
    tool: str
    chosen: bool = True  # to be allowed to propose it from now on

    @property
    def value(self) -> str:
        """How a form names it."""
        return f"{self.agent} {self.tool}"


def select_counted() -> QuerySet[Proposal]:
    """The proposals among which calls are counted."""
    return visibility.select_newest(Proposal.objects.all(), NEWEST)


def list_undeclared(person: Person) -> list[UndeclaredRow]:
    """The tools that were called and are not declared, the last called first. Empty for
    a person who may not write policies."""
    if not is_administrator(person):
        return []
    policy = active.find_active_policy()
    known = active.load_document(policy).tools if policy else ()
    rows = (
        select_counted()
        .filter(_was_undeclared())
        .exclude(tool_name__in=[*known])
        .values("tool_name")
        .annotate(
            calls=Count("pk"),
            last=Max("created_at"),
            agents=ArrayAgg("agent", distinct=True, order_by="agent"),
        )
        .order_by("-last")[:MOST_ROWS]
    )
    return [
        UndeclaredRow(
            row["tool_name"],
            row["calls"],
            row["last"],
            row["agents"][:MOST_AGENTS],
            max(len(row["agents"]) - MOST_AGENTS, 0),
        )
        for row in rows
    ]


def declare(person: Person, name: str, base: PolicyVersion) -> Declaration:
    """The text of a version with an entry for a tool that was called. Raises
    NotPermitted for anyone but an administrator, NotFound for a tool that no agent
    called, PolicyViolation for one that the version declares."""
    check_administrator(person)
    if not re.fullmatch(TOOL_NAME, name):
        raise NotFound
    document = active.load_document(base)
    if name in document.tools:
        raise PolicyViolation(
            f"Version {base.number} declares {name} already. Change its entry in the"
            " text instead."
        )
    forms = _list_forms(name, document)
    if not forms:
        raise NotFound
    return declarations.declare_tool(
        base.document, forms, further=callables.list_problems
    )


def _list_forms(name: str, document: Document) -> list[UndeclaredTool]:
    """The definitions of the tool's calls, the newest first, as this policy holds
    them. Calls that were refused have none, so it is made from the last of them."""
    held = document.held_unknown or UnknownTools(hold=next(iter(document.queues)))
    rows = Tool.objects.filter(name=name, definition__has_key="undeclared")
    definitions = [tools.load_definition(row) for row in rows.order_by("-version")]
    forms = [form for form in definitions if isinstance(form, UndeclaredTool)]
    if forms:
        changes = {"queue": held.hold, "floor": held.tier}
        return [form.model_copy(update=changes) for form in forms]
    refused = Revision.objects.filter(
        proposal__tool_name=name, proposal__blocked_by=UNKNOWN
    )
    last = refused.filter(proposal__in=select_counted()).order_by("-pk").first()
    if last is None or not undeclared_tools.can_hold(name, last.args):
        return []
    return [undeclared_tools.build_definition(name, last.args, held)]


def _was_undeclared() -> Q:
    seen = Tool.objects.filter(definition__has_key="undeclared").values("name")
    return Q(tool_name__in=seen) | Q(blocked_by=UNKNOWN)


def list_callers(
    person: Person, version: PolicyVersion, chosen: Collection[str] | None = None
) -> list[Caller]:
    """The agents that called tools which this draft declares and the active version
    does not, as far as they may not propose them yet. `chosen` are the values of a form
    that was sent."""
    if not is_administrator(person):
        return []
    policy = active.find_active_policy()
    known = active.load_document(policy).tools if policy else {}
    fresh = [name for name in active.load_document(version).tools if name not in known]
    if not fresh:
        return []
    calls = select_counted().filter(_was_undeclared(), tool_name__in=fresh)
    pairs = sorted(set(calls.values_list("agent", "tool_name")))
    allowed = dict(Agent.objects.values_list("slug", "tools")) if pairs else {}
    callers = [Caller(agent, tool) for agent, tool in pairs]
    return [
        caller._replace(chosen=chosen is None or caller.value in chosen)
        for caller in callers
        if caller.agent in allowed and caller.tool not in allowed[caller.agent]
    ]


def allow_callers(person: Person, callers: Iterable[Caller]) -> None:
    """Let the chosen ones of these agents propose the tools that they called."""
    fresh: dict[str, list[str]] = {}
    for caller in callers:
        if caller.chosen:  # guard: marked-caller
            fresh.setdefault(caller.agent, []).append(caller.tool)
    for agent in Agent.objects.filter(slug__in=fresh).order_by("slug"):
        registry.allow_tools(agent=agent, tools=fresh[agent.slug], by=person)
