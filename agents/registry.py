"""Registering agents and saying what they may propose. Administrators' work."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import IntegrityError, transaction

from journal import clock, log
from journal.errors import Conflict, Invalid, at
from policies.choices import Risk
from policies.models import Person

from .models import Agent

MOST_VERSION = 64


@transaction.atomic(durable=True)
def register(
    *,
    slug: str,
    name: str,
    owner: Person,
    tools: Sequence[str],
    by: Person,
    risk_ceiling: Risk = Risk.CRITICAL,
    unattended: bool = False,
    version: str = "",
) -> Agent:
    """A new agent with its owner, its tools and its ceiling. Raises Conflict."""
    try:
        agent = Agent.objects.create(
            slug=slug,
            name=name,
            owner=owner,
            tools=list(tools),
            risk_ceiling=risk_ceiling,
            unattended=unattended,
            version=version,
        )
    except IntegrityError:
        raise Conflict(f"An agent {slug} is registered already.") from None
    _tell("agent.registered", agent, by)
    return agent


@transaction.atomic(durable=True)
def allow(*, agent: Agent, tools: Sequence[str], by: Person) -> Agent:
    """Replace what the agent may propose."""
    Agent.objects.filter(pk=agent.pk).update(tools=list(tools))
    agent.refresh_from_db()
    _tell("agent.tools_changed", agent, by)
    return agent


@transaction.atomic(durable=True)
def release(*, agent: Agent, version: str, by: Person) -> Agent:
    """From now on the agent is another version of itself: what it proposes is not put
    together with what the former one proposed. Raises Invalid."""
    if len(version) > MOST_VERSION:
        wrong = f"at most {MOST_VERSION} characters"
        raise Invalid(f"The version: {wrong}.", errors=[at("version", wrong)])
    Agent.objects.filter(pk=agent.pk).update(version=version)
    agent.refresh_from_db()
    _tell("agent.released", agent, by)
    return agent


def _tell(kind: str, agent: Agent, by: Person) -> None:
    log.append(
        kind,
        actor=log.Actor("person", by.public_id),
        at=clock.now(),
        agent=agent.slug,
        data={
            "agent": agent.slug,
            "owner": agent.owner.public_id,
            "tools": sorted(agent.tools),
            "risk_ceiling": agent.risk_ceiling,
            "unattended": agent.unattended,
            "version": agent.version,
        },
    )
