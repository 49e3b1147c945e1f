"""The administrators' operations on agents: registration, tools, risk ceiling, owner
and version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from django.db import IntegrityError

from journal import clock, log
from journal.errors import Conflict, InvalidInput, build_field_error
from journal.operations import operation
from policies import active, people
from policies.choices import Risk
from policies.models import Person
from policies.people import build_actor
from reviews.people import identities

from .models import Agent

MAX_VERSION_LENGTH = 64
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class AgentChange:
    """New values for an agent; None leaves a value as it is. `tools` replaces the whole
    list of what the agent may propose."""

    tools: Sequence[str] | None = None
    risk_ceiling: Risk | None = None
    owner: Person | None = None


@operation(writes="Agent", logs="agent.registered")
def register_agent(
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
    """Register an agent. Raises NotPermitted for anyone but an administrator, Conflict
    when the slug is taken."""
    people.check_administrator(by)
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
        raise Conflict(f"An agent named {slug} is already registered.") from None
    _log_agent_change("agent.registered", agent, by)
    return agent


@operation(
    writes="Agent; for a new owner also Proposal and ApprovalRequest",
    logs="agent.changed",
)
def change_agent(*, agent: Agent, change: AgentChange, by: Person) -> Agent:
    """Change an agent's tools, risk ceiling or owner, with effect from its next
    proposal. The new owner is also barred from deciding the agent's waiting requests,
    and their vote on what has not run no longer holds. Raises NotPermitted for anyone
    but an administrator, InvalidInput when nothing changes or the new owner is
    deactivated."""
    people.check_administrator(by)
    fresh = _collect_changes(change)
    if not fresh:
        rule = "set tools, a risk ceiling or an owner"
        raise InvalidInput(errors=[build_field_error("change", rule)])
    Agent.objects.filter(pk=agent.pk).update(**fresh)
    agent = Agent.objects.select_related("owner").get(pk=agent.pk)
    if change.owner is not None:
        identities.bar_owner(agent.slug, change.owner)
    _log_agent_change("agent.changed", agent, by)
    return agent


def _collect_changes(change: AgentChange) -> dict[str, object]:
    if change.owner is not None and not change.owner.is_active:
        rule = "this account is deactivated"
        raise InvalidInput(errors=[build_field_error("owner", rule)])
    fields = {
        "tools": None if change.tools is None else sorted(set(change.tools)),
        "risk_ceiling": change.risk_ceiling,
        "owner": change.owner,
    }
    return {name: value for name, value in fields.items() if value is not None}


def match_tools(
    patterns: Iterable[str], among: Iterable[str] | None = None
) -> list[str]:
    """Return the tool names, sorted, that match any of these names and patterns such as
    `files_*`. `among` defaults to the active policy's tools. Raises InvalidInput for a
    name or pattern that matches none."""
    if among is None:
        policy = active.find_active_policy()
        among = active.load_document(policy).tools if policy else ()
    known, names = sorted(among), set[str]()
    for pattern in patterns:
        matched = [name for name in known if fnmatchcase(name, pattern)]
        if not matched:
            listed = f"there are {', '.join(known)}" if known else "there are none"
            message = f"no tool matches {pattern}: {listed}"
            raise InvalidInput(errors=[build_field_error("tool", message)])
        names.update(matched)
    return sorted(names)


def is_pattern(text: str) -> bool:
    """Whether this text has wildcards and so may match several tools."""
    return not _WILDCARDS.isdisjoint(text)


@operation(writes="Agent", logs="agent.released")
def release_version(*, agent: Agent, version: str, by: Person) -> Agent:
    """Record a new version of the agent. Its proposals are from now on in no batch with
    those of an earlier version. Raises NotPermitted for anyone but an administrator or
    the agent's owner, InvalidInput when the version is too long."""
    people.check_owner_or_administrator(agent.owner, by)
    if len(version) > MAX_VERSION_LENGTH:
        rule = f"at most {MAX_VERSION_LENGTH} characters"
        errors = [build_field_error("version", rule)]
        raise InvalidInput(f"The version: {rule}.", errors=errors)
    Agent.objects.filter(pk=agent.pk).update(version=version)
    agent.refresh_from_db()
    _log_agent_change("agent.released", agent, by)
    return agent


def _log_agent_change(kind: str, agent: Agent, by: Person) -> None:
    log.append(
        kind,
        actor=build_actor(by),
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
