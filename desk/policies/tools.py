"""Page model of the tools: each one that the active policy declares, how its calls are
decided, and how often it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Count, Max

from policies import active
from policies.documents import Document, ToolDefinition
from policies.models import Person
from reviews import permissions
from reviews.roles import Permission

from ..components.banners import SwitchBanner
from . import pages, undeclared
from .undeclared import NEWEST


class Calls(NamedTuple):
    """Of a tool, among the newest proposals."""

    number: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """`people` are those who decide its calls, each with the amounts or classes for
    which they do, empty where they decide all; `rules` counts those of the policy that
    may ask for more. `calls` is None for who may not see everybody's. `switch` is what
    stops or pauses it now, if the person sees it."""

    tool: ToolDefinition
    performed: str
    people: Sequence[tuple[str, str]]
    rules: int
    queue: str
    calls: Calls | None
    switch: SwitchBanner | None


@dataclass(frozen=True, slots=True)
class ToolsPage:
    """`version` is that of the active policy, 0 before there is one."""

    version: int
    rows: list[DeclaredTool]

    @property
    def newest(self) -> str:
        return f"{NEWEST:,}"

    @property
    def counts_calls(self) -> bool:
        return any(row.calls is not None for row in self.rows)


def build_tools_page(person: Person, switches: Mapping[str, SwitchBanner]) -> ToolsPage:
    """The page for this person; `switches` are those over a tool that they see, by its
    name. Raises NotFound for a person whose role may not read policies."""
    pages.check_reader(person)
    policy = active.find_active_policy()
    if policy is None:
        return ToolsPage(0, [])
    document = active.load_document(policy)
    sees_calls = permissions.has_permission(person, Permission.SEE_ALL)
    calls = _count_calls() if sees_calls else None
    return ToolsPage(
        policy.number,
        [
            _build_row(
                document,
                tool,
                None if calls is None else calls.get(name, Calls()),
                switches.get(name),
            )
            for name, tool in sorted(document.tools.items())
        ],
    )


def _count_calls() -> dict[str, Calls]:
    counted = (
        undeclared.select_counted()
        .values("tool_name")
        .annotate(number=Count("pk"), last=Max("created_at"))
    )
    return {row["tool_name"]: Calls(row["number"], row["last"]) for row in counted}


def _build_row(
    document: Document,
    tool: ToolDefinition,
    calls: Calls | None,
    switch: SwitchBanner | None,
) -> DeclaredTool:
    line = pages.build_tool_line(document, tool)
    asked: dict[str, list[str]] = {}
    for band in line.bands:
        asked.setdefault(band.people, []).append(band.when)
    return DeclaredTool(
        tool=tool,
        performed=line.performed,
        people=[
            (people, "; ".join(spans) if len(asked) > 1 else "")
            for people, spans in asked.items()
        ],
        rules=sum(bool(need.people) for need in line.rules),
        queue=document.queues.get(tool.queue, tool.queue),
        calls=calls,
        switch=switch,
    )
