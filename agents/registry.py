"""The administrators' operations on agents: registration, tools, risk ceiling, daily
limit, owner and version."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from django.db import IntegrityError

from journal.errors import Conflict, InvalidInput, build_field_error
from journal.operations import operation
from policies import active, budgets, people, solo
from policies.budgets import Budget
from policies.choices import Risk
from policies.models import Person
from reviews.people import identities

from . import agent_settings, locks, setting_changes
from .agent_settings import AgentSettings
from .models import Agent, SettingsChange

MAX_VERSION_LENGTH = 64
MOST_DAILY = 1_000_000  # proposals in 24 hours
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class AgentChange:
    """New values for an agent; None leaves a value as it is. `tools` replaces the whole
    list of what the agent may propose; `daily_proposals` is the most that it may
    propose within 24 hours, and `daily_money` the most that it may move in them."""

    tools: Sequence[str] | None = None
    risk_ceiling: Risk | None = None
    owner: Person | None = None
    daily_proposals: int | None = None  # 0: no limit
    daily_money: Budget | None = None  # empty: no limit


@dataclass(frozen=True, slots=True)
class NewAgent:
    """An agent to register; its other fields are those of its row."""

    slug: str
    name: str
    owner: Person
    tools: Sequence[str]
    risk_ceiling: Risk = Risk.CRITICAL
    unattended: bool = False
    version: str = ""
    daily_proposals: int | None = None
    daily_money: Budget | None = None

    @property
    def settings(self) -> AgentSettings:
        """What it is to be allowed. Raises InvalidInput for an impossible budget."""
        return AgentSettings(
            tools=tuple(sorted(set(self.tools))),
            risk_ceiling=self.risk_ceiling,
            daily_proposals=self.daily_proposals or None,
            daily_money=budgets.check_budget(self.daily_money or {}) or None,
        )


@operation(writes="Agent", logs="agent.registered")
def register_agent(*, new: NewAgent, by: Person) -> Agent:
    """Register an agent at once, for whoever runs the gate. Raises NotPermitted for
    anyone but an administrator, Conflict when the slug is taken."""
    return _create_agent(new, new.settings, by)


@operation(
    writes="Agent, SettingsChange", logs="agent.registered, agent.change_proposed"
)
def propose_agent(*, new: NewAgent, by: Person, reason: str) -> Agent:
    """Register an agent that may propose nothing until a second administrator confirms
    its tools and its risk. Otherwise a new agent would be the way around the second one
    whom a change of an agent takes.

    Raises NotPermitted for anyone but an administrator, Conflict when the slug is
    taken, and TextMissing without a reason."""
    wanted = new.settings
    allowed = wanted
    if not solo.is_solo():  # guard: new-agent-second-person
        allowed = agent_settings.narrow(agent_settings.NOTHING, wanted)
    agent = _create_agent(new, allowed, by)
    if allowed != wanted:
        setting_changes.propose_change(agent, allowed, wanted, reason=reason, by=by)
    return agent


def _create_agent(new: NewAgent, allowed: AgentSettings, by: Person) -> Agent:
    people.check_administrator(by)
    try:
        agent = Agent.objects.create(
            slug=new.slug,
            name=new.name,
            owner=new.owner,
            unattended=new.unattended,
            version=new.version,
            **allowed.to_columns(),
        )
    except IntegrityError:
        raise Conflict(f"An agent named {new.slug} is already registered.") from None
    setting_changes.log_agent_change("agent.registered", agent, by)
    return agent


@operation(
    locks="settings change",
    writes="Agent, SettingsChange; for a new owner also Proposal and ApprovalRequest",
    logs="agent.changed, agent.change_proposed, agent.change_void",
)
def change_agent(
    *, agent: Agent, change: AgentChange, by: Person, reason: str = ""
) -> SettingsChange | None:
    """Change an agent's tools, risk ceiling, limits or owner. What tightens, and the
    owner, takes effect from its next proposal. What loosens waits for a second
    administrator, for a `reason`: the change is returned, None where there is nothing
    to confirm. The new owner is also barred from deciding the agent's waiting requests,
    and their vote on what has not run no longer holds.

    Raises NotPermitted for anyone but an administrator, InvalidInput when nothing
    changes or the new owner is deactivated, TextMissing for what loosens without a
    reason, and Conflict while another loosening waits."""
    people.check_administrator(by)
    fresh = _collect_changes(change)
    if not fresh:
        rule = "set tools, a risk ceiling, a daily limit or an owner"
        raise InvalidInput(errors=[build_field_error("change", rule)])
    agent, waiting = _lock_settings(agent)
    before = agent_settings.load_settings(agent)
    owner = {"owner": fresh.pop("owner")} if "owner" in fresh else {}
    wanted = agent_settings.build_settings({**before.to_columns(), **fresh})
    now = wanted
    if not solo.is_solo():  # guard: agent-second-person
        now = agent_settings.narrow(before, wanted)
    if now != before:
        setting_changes.void_waiting(waiting, by)
    if now != before or owner:
        _put_in_force(agent, now, by, **owner)
    if change.owner is not None and not solo.is_solo():
        identities.bar_owner(agent.slug, change.owner)
    if now == wanted:
        return None
    return setting_changes.propose_change(agent, now, wanted, reason=reason, by=by)


@operation(
    locks="settings change",
    writes="Agent, SettingsChange",
    logs="agent.changed, agent.change_void",
)
def allow_tools(*, agent: Agent, tools: Collection[str], by: Person) -> None:
    """Let an agent propose tools that a policy brings, which another administrator than
    its author activates: two people agree on it already. Raises NotPermitted for anyone
    but an administrator, and Conflict where the settings change meanwhile."""
    people.check_administrator(by)
    agent, waiting = _lock_settings(agent)
    setting_changes.void_waiting(waiting, by)
    before = agent_settings.load_settings(agent)
    more = tuple(sorted({*before.tools, *tools}))
    _put_in_force(agent, replace(before, tools=more), by)


def _lock_settings(agent: Agent) -> tuple[Agent, list[SettingsChange]]:
    """The agent as it is now, and the changes of its settings that wait: locked first,
    so that a confirmation is over when the settings are read, or ends here."""
    waiting = locks.lock_open_changes(agent)
    return Agent.objects.select_related("owner").get(pk=agent.pk), waiting


def _put_in_force(agent: Agent, after: AgentSettings, by: Person, **more: Any) -> None:
    """Write the settings, and `more` columns, and log them. Raises Conflict where the
    settings changed since the agent was read."""
    before = agent_settings.load_settings(agent)
    if not setting_changes.write_settings(agent, before, after, **more):
        raise Conflict(setting_changes.CHANGED)
    fresh = Agent.objects.select_related("owner").get(pk=agent.pk)
    setting_changes.log_agent_change("agent.changed", fresh, by, agent)


def _collect_changes(change: AgentChange) -> dict[str, object]:
    if change.owner is not None and not change.owner.is_active:
        rule = "this account is deactivated"
        raise InvalidInput(errors=[build_field_error("owner", rule)])
    if not 0 <= (change.daily_proposals or 0) <= MOST_DAILY:
        rule = f"a number of proposals from 1 to {MOST_DAILY}, or 0 for no limit"
        raise InvalidInput(errors=[build_field_error("daily_proposals", rule)])
    fields: dict[str, object] = {
        "tools": None if change.tools is None else sorted(set(change.tools)),
        "risk_ceiling": change.risk_ceiling,
        "owner": change.owner,
    }
    fresh = {name: value for name, value in fields.items() if value is not None}
    if change.daily_proposals is not None:
        fresh["daily_proposals"] = change.daily_proposals or None
    if change.daily_money is not None:
        fresh["daily_money"] = budgets.check_budget(change.daily_money) or None
    return fresh


def match_tools(
    patterns: Collection[str], among: Iterable[str] | None = None
) -> list[str]:
    """Return the tool names, sorted, that match any of these names and patterns such as
    `files_*`. `among` defaults to the active policy's tools. Raises InvalidInput for a
    name or pattern that matches none."""
    if among is None:
        policy = active.find_active_policy()
        if policy is None and patterns:
            message = (
                "a pattern is of an active policy's tools, and no policy is active:"
                " counterseal policy load --by ADMINISTRATOR --activate 1"
            )
            raise InvalidInput(errors=[build_field_error("tool", message)])
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
    former = Agent.objects.select_related("owner").get(pk=agent.pk)
    Agent.objects.filter(pk=agent.pk).update(version=version)
    agent.refresh_from_db()
    setting_changes.log_agent_change("agent.released", agent, by, former)
    return agent
