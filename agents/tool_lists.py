"""The tools of the active policy and those that it does not declare, with the agents
that may call them: what `counterseal tools list` prints."""

from __future__ import annotations

from typing import Any

from policies import active, tools
from policies.documents import ToolDefinition
from policies.models import PolicyVersion, Tool
from reviews.models import Proposal

from .models import Agent


def list_tools(policy: PolicyVersion | None) -> list[dict[str, Any]]:
    """A row for each tool that the policy declares, then for each that it does not and
    that agents have called; in the order of their names."""
    declared = dict(active.load_tools(policy)) if policy else {}
    undeclared = _find_undeclared_tools(set(declared))
    agents = list(Agent.objects.order_by("slug"))
    return [
        describe_tool(tool, agents)
        for tools_by_name in (declared, undeclared)
        for _, tool in sorted(tools_by_name.items())
    ]


def find_tool(name: str, policy: PolicyVersion | None) -> Tool | None:
    """The version that the policy declares, or else the newest one that was called."""
    declared = tools.find_current_tool(name, policy) if policy else None
    return declared or _find_undeclared_tools(set()).get(name)


def _find_undeclared_tools(declared: set[str]) -> dict[str, Tool]:
    """The newest version of each tool that agents have called undeclared."""
    rows = Tool.objects.select_related("queue").filter(definition__has_key="undeclared")
    newest = rows.order_by("name", "-version").distinct("name")
    return {tool.name: tool for tool in newest if tool.name not in declared}


def describe_tool(tool: Tool, agents: list[Agent]) -> dict[str, Any]:
    """One tool as a row. Any agent may call an undeclared one."""
    definition = tools.load_definition(tool)
    allowed = [agent.slug for agent in agents if tool.name in agent.tools]
    return {
        "tool": tool.name,
        "declared": not definition.is_undeclared,
        "queue": tool.queue.name,
        "risk": tool.risk,
        "tier": definition.base.value,
        "performed_by": _describe_performer(definition),
        "agents": ["any"] if definition.is_undeclared else allowed,
    }


def _describe_performer(definition: ToolDefinition) -> str:
    if definition.by_agent:
        return "its agent"
    return f"the gate ({definition.executor.kind})"


def count_calls(tool: Tool) -> int:
    """How many calls of a tool with this name agents have proposed."""
    return Proposal.objects.filter(tool_name=tool.name).count()
