"""What people may read of agents and their runs. Loading is authorising."""

from __future__ import annotations

from . import deliveries
from .agent import AgentPage, agent_page
from .listing import AgentLine, agents, load
from .thread import ThreadPage, thread_page

__all__ = [
    "AgentLine",
    "AgentPage",
    "ThreadPage",
    "agent_page",
    "agents",
    "deliveries",
    "load",
    "thread_page",
]
