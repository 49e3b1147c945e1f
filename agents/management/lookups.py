"""Which agent or key an argument of a command names, and a refusal in its words."""

from __future__ import annotations

from django.core.management.base import CommandError

from agents.models import Agent, AgentKey


def agent(slug: str) -> Agent:
    """Raises CommandError when no agent has this name."""
    found = Agent.objects.select_related("owner").filter(slug=slug).first()
    if found is None:
        raise CommandError(f"No agent is called {slug}.")
    return found


def key(agent: Agent, prefix: str) -> AgentKey:
    """Raises CommandError when the agent has no key that begins so."""
    bare = prefix.removeprefix("hp_")
    found = AgentKey.objects.filter(agent=agent, prefix=bare).first()
    if found is None:
        raise CommandError(f"{agent.slug} has no key {prefix}.")
    return found
