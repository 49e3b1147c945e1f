"""The only place that locks the agents' rows: the thread, first of all locks."""

from __future__ import annotations

from journal.errors import NotFound

from .models import Agent, Thread


def thread(agent: Agent, name: str) -> Thread:
    """The agent's thread, locked until the transaction ends. Raises NotFound."""
    try:
        return (
            Thread.objects.select_related("agent")
            .select_for_update(of=("self",), no_key=True)
            .get(agent=agent, name=name)
        )
    except Thread.DoesNotExist:
        raise NotFound from None
