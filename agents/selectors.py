"""What an agent may read: its own proposals, threads, tools and identity; and whether a
run is silent, so that people may end it by hand."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from journal import clock, cursors
from journal.errors import InvalidInput, NotFound, build_field_error
from policies import active, tools
from policies.choices import Risk
from policies.documents import ToolDefinition
from reviews.models import Proposal
from reviews.stops import stops

from . import budgets, representation
from .models import Agent, AgentKey, Thread


def list_own_proposals(
    agent: str, *, status: str, thread: str, cursor: str, size: int
) -> tuple[list[Proposal], str | None]:
    """Return a page of the agent's proposals, newest first, and the cursor of the next
    page, None on the last. Raises InvalidInput for an unknown status or a malformed
    cursor."""
    rows = representation.annotate_status(Proposal.objects.filter(agent=agent))
    if thread:
        rows = rows.filter(thread=thread)
    if status and status not in representation.STATUSES:
        raise InvalidInput(errors=[build_field_error("status", "not a known status")])
    if status:
        rows = rows.filter(said=status)
    place = cursors.parse_cursor(cursor)
    ordered = cursors.select_after(rows, place, "created_at", newest_first=True)
    proposals = list(ordered.select_related("request")[: size + 1])
    next_cursor = cursors.build_next_cursor(proposals, size, "created_at")
    return proposals[:size], next_cursor


def load_thread(agent: Agent, name: str) -> Thread:
    """Raises NotFound."""
    row = Thread.objects.filter(agent=agent, name=name).select_related("agent").first()
    if row is None:
        raise NotFound
    return row


def list_allowed_tools(agent: Agent) -> list[dict[str, Any]]:
    """List the tools that the agent may propose, that the active policy has, and whose
    risk is within the agent's ceiling, as `ToolOut` objects."""
    policy = active.find_active_policy()
    current = active.load_tools(policy) if policy else {}
    rows = [
        (tool.version, tools.load_definition(tool))
        for name, tool in sorted(current.items())
        if agent.may_propose(name)
    ]
    ceiling = Risk(agent.risk_ceiling).rank
    return [_build_tool(v, d) for v, d in rows if d.risk.rank <= ceiling]


def _build_tool(version: int, definition: ToolDefinition) -> dict[str, Any]:
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


def build_identity(key: AgentKey) -> dict[str, Any]:
    """Build the `WhoamiOut` of a key: its agent, its scopes, whether the agent runs or
    is paused or stopped, and what is left of its limits."""
    agent = key.agent
    mode = stops.find_stop_mode(agent.slug, "", "")
    return {
        "agent": agent.slug,
        "name": agent.name,
        "version": agent.version,
        "tools": sorted(agent.tools),
        "risk_ceiling": agent.risk_ceiling,
        "scopes": key.scopes,
        "state": mode or "running",
        **budgets.describe_limits(agent, clock.now()),
    }


SILENT_AFTER = timedelta(minutes=10)


def is_silent(thread: Thread, now: datetime) -> bool:
    """Whether the run neither started nor proposed anything within SILENT_AFTER."""
    asked = Proposal.objects.filter(agent=thread.agent.slug, thread=thread.name)
    newest = asked.order_by("-created_at").values_list("created_at", flat=True).first()
    return max(thread.started_at, newest or thread.started_at) + SILENT_AFTER <= now
