"""Find the agent or key that a command's argument names, or raise CommandError."""

from __future__ import annotations

from django.core.management.base import CommandError

from agents.models import Agent, AgentKey


def load_agent(slug: str) -> Agent:
    """Return the agent with its owner. Raises CommandError."""
    agent = Agent.objects.select_related("owner").filter(slug=slug).first()
    if agent is None:
        raise CommandError(f"There is no agent {slug}.")
    return agent


def load_key(agent: Agent, prefix: str) -> AgentKey:
    """The prefix is given with or without `cs_`. Raises CommandError."""
    bare = prefix.removeprefix("cs_")
    key = AgentKey.objects.filter(agent=agent, prefix=bare).first()
    if key is None:
        raise CommandError(f"{agent.slug} has no key {prefix}.")
    return key
