"""A thread's two states. Waiting is derived; pause and stop are Stop rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import connection

from journal import log
from journal.machine import NOWHERE, Edge, Machine

from .choices import ThreadStatus as T
from .models import Agent, Thread


def _about(row: Thread) -> Mapping[str, Any]:
    return {"agent": row.agent.slug, "thread": row.name}


thread = Machine(
    "thread",
    [
        Edge(NOWHERE, "start", T.RUNNING, "thread.started"),
        Edge(T.RUNNING, "finish", T.FINISHED, "thread.finished"),
    ],
    _about,
)
MACHINES = {Thread: thread}


def start(agent: Agent, name: str, *, now: datetime) -> None:
    """Begin a run unless it is there already. Caller holds a transaction.

    Of two first proposals at once, the second's INSERT waits for the first's commit
    and then does nothing.
    """
    edge = thread.edge(NOWHERE, "start")
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO agents_thread (agent_id, name, status, result, started_at)"
            " VALUES (%s, %s, %s, '', %s) ON CONFLICT (agent_id, name) DO NOTHING",
            [agent.pk, name, edge.target, now],
        )
        if cursor.rowcount == 0:
            return
    log.append(
        edge.logged_as,
        actor=log.Actor("agent", agent.slug),
        at=now,
        to=edge.target,
        agent=agent.slug,
        thread=name,
    )
