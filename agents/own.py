"""What an agent may read: its own proposals, threads, tools and identity."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet

from journal.errors import Invalid, NotFound
from policies import tools
from policies.choices import Risk
from policies.documents import ToolDefinition
from reviews import stops
from reviews.models import Proposal

from . import outcomes
from .models import Agent, AgentKey, Thread

PROPOSAL_ID = re.compile(r"p-[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a listing, and where the next one starts."""

    items: list[Proposal]
    next_cursor: str | None


def own_proposals(
    agent: str, *, status: str, thread: str, cursor: str, size: int
) -> Page:
    """Newest first, by key and not by offset, so that pages stay put.

    Raises Invalid for an unknown status or a cursor that is not ours.
    """
    rows = outcomes.with_status(Proposal.objects.filter(agent=agent))
    if thread:
        rows = rows.filter(thread=thread)
    if status:
        rows = rows.filter(said=_known(status))
    if cursor:
        rows = _after(rows, cursor)
    ordered = rows.select_related("request").order_by("-created_at", "-pk")
    found = list(ordered[: size + 1])
    more = _cursor(found[size - 1]) if len(found) > size else None
    return Page(found[:size], more)


def _known(status: str) -> str:
    if status not in outcomes.STATUSES:
        raise Invalid(errors=[{"path": "status", "message": "not a known status"}])
    return status


def _cursor(last: Proposal) -> str:
    text = f"{last.created_at.isoformat()}|{last.pk}"
    return base64.urlsafe_b64encode(text.encode()).decode()


def _after(rows: QuerySet[Any], cursor: str) -> QuerySet[Any]:
    try:
        at, _, pk = base64.urlsafe_b64decode(cursor).decode().partition("|")
        moment = datetime.fromisoformat(at).astimezone(UTC)
        if not PROPOSAL_ID.fullmatch(pk):
            raise ValueError(pk)
    except (ValueError, OverflowError):
        raise Invalid(
            errors=[{"path": "cursor", "message": "not a cursor of ours"}]
        ) from None
    return rows.filter(Q(created_at__lt=moment) | Q(created_at=moment, pk__lt=pk))


def thread(agent: Agent, name: str) -> Thread:
    """Raises NotFound."""
    row = Thread.objects.filter(agent=agent, name=name).select_related("agent").first()
    if row is None:
        raise NotFound
    return row


def tools_of(agent: Agent) -> list[dict[str, Any]]:
    """The agent's allowed tools that the active policy knows and its ceiling covers."""
    found = (tools.current(name) for name in sorted(agent.tools))
    rows = [(tool.version, tools.definition(tool)) for tool in found if tool]
    ceiling = Risk(agent.risk_ceiling).rank
    return [_tool(v, d) for v, d in rows if d.risk.rank <= ceiling]


def _tool(version: int, definition: ToolDefinition) -> dict[str, Any]:
    return {
        "name": definition.name,
        "version": version,
        "title": definition.title,
        "description": definition.description,
        "schema": definition.arguments,
        "risk": definition.risk,
        "tier": definition.base,
        "requires_reason": definition.requires_reason,
    }


def identity(key: AgentKey) -> dict[str, Any]:
    """Who the key is, and whether it is switched off."""
    agent = key.agent
    mode = stops.in_force(agent.slug, "", "")
    return {
        "agent": agent.slug,
        "name": agent.name,
        "version": agent.version,
        "tools": sorted(agent.tools),
        "risk_ceiling": agent.risk_ceiling,
        "scopes": key.scopes,
        "state": mode or "running",
    }
