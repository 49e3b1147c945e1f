"""What people may read of agents and their runs. Loading is authorising."""

from __future__ import annotations

from .agent import AgentPage, agent_page
from .listing import AgentLine, agents, load
from .thread import ThreadPage, thread_page

__all__ = [
    "AgentLine",
    "AgentPage",
    "ThreadPage",
    "agent_page",
    "agents",
    "load",
    "thread_page",
]
