"""The state machines of threads and deliveries. That a thread waits is derived from its
requests; pauses and stops are Stop rows of the gate."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from journal import log
from journal.state_machine import NO_SOURCE, Edge, Machine
from journal.statements import Statement

from .choices import DeliveryStatus as D
from .choices import SettingsStatus as S
from .choices import ThreadStatus as T
from .models import Agent, Delivery, SettingsChange, Thread


def _build_thread_facts(row: Thread) -> Mapping[str, Any]:
    return {"agent": row.agent.slug, "thread": row.name}


thread = Machine(
    "thread",
    [
        Edge(NO_SOURCE, "start", T.RUNNING, "thread.started"),
        Edge(T.RUNNING, "finish", T.FINISHED, "thread.finished"),
    ],
    _build_thread_facts,
)


def _build_delivery_facts(row: Delivery) -> Mapping[str, Any]:
    """Build the log's facts. They never hold the address: its path may be a secret."""
    return {
        "proposal": row.proposal,
        "agent": row.endpoint.agent.slug,
        "thread": row.thread,
        "data": {
            "delivery": row.pk,
            "event": row.event,
            "kind": row.kind,
            "endpoint": row.endpoint_id,
            **({"answer": row.last_answer} if row.last_answer else {}),
        },
    }


delivery = Machine(
    "delivery",
    [
        Edge(NO_SOURCE, "promise", D.WAITING, "delivery.promised"),
        Edge(D.WAITING, "deliver", D.DELIVERED, "delivery.delivered"),
        Edge(D.WAITING, "take", D.TAKEN, "delivery.taken"),
        Edge(D.WAITING, "give_up", D.DEAD, "delivery.dead"),
        Edge(D.WAITING, "hold", D.HELD, "delivery.held"),
        Edge(D.DEAD, "again", D.WAITING, "delivery.again"),
        Edge(D.HELD, "again", D.WAITING, "delivery.again"),
        Edge(D.DEAD, "take", D.TAKEN, "delivery.taken"),
        Edge(D.HELD, "take", D.TAKEN, "delivery.taken"),
    ],
    _build_delivery_facts,
)


def _build_settings_facts(row: SettingsChange) -> Mapping[str, Any]:
    return {"agent": row.agent.slug}


settings_change = Machine(
    "change of an agent's settings",
    [
        Edge(NO_SOURCE, "propose", S.PROPOSED, "agent.change_proposed"),
        Edge(S.PROPOSED, "confirm", S.CONFIRMED, "agent.change_confirmed"),
        Edge(S.PROPOSED, "refuse", S.REFUSED, "agent.change_refused"),
        Edge(S.PROPOSED, "withdraw", S.WITHDRAWN, "agent.change_withdrawn"),
        Edge(S.PROPOSED, "lapse", S.LAPSED, "agent.change_lapsed"),
        Edge(S.PROPOSED, "void", S.VOID, "agent.change_void"),
    ],
    _build_settings_facts,
)
MACHINES = {Thread: thread, Delivery: delivery, SettingsChange: settings_change}


_START = Statement("""
INSERT INTO agents_thread (agent_id, name, status, result, started_at)
VALUES (%(agent)s, %(name)s, %(status)s, '', %(at)s)
ON CONFLICT (agent_id, name) DO NOTHING
""")


def start_thread(agent: Agent, name: str, *, now: datetime) -> None:
    """Create and log the running thread unless it exists. Caller holds a transaction.
    Of two concurrent first proposals, the second INSERT waits for the first to commit
    and then does nothing."""
    edge = thread.edge(NO_SOURCE, "start")
    if not _START.execute(agent=agent.pk, name=name, status=edge.target, at=now):
        return
    log.append(
        edge.logged_as,
        actor=log.Actor("agent", agent.slug),
        at=now,
        to=edge.target,
        agent=agent.slug,
        thread=name,
    )
