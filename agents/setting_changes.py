"""What loosens an agent's settings takes two administrators: one asks for it, another
one confirms it or refuses it.

The change is judged on the settings that both of them saw. Once the agent's settings
are others, it is void: what tightens always wins over a loosening that waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import IntegrityError
from django.db.models import Q, QuerySet

from journal import clock, log, transactions
from journal.errors import Conflict
from journal.operations import operation
from policies import people
from policies.models import Person
from policies.people import build_actor
from reviews.administration import second_person

from . import agent_settings, locks, transitions
from .agent_settings import AgentSettings
from .choices import SettingsStatus
from .models import Agent, SettingsChange

WAITS_ALREADY = (
    "A change of this agent waits for a second administrator already. Nothing was"
    " changed. It has to be answered or withdrawn first."
)
CHANGED = (
    "The agent's settings changed since they were shown. Nothing was changed. Open the"
    " page again."
)


def propose_change(
    agent: Agent,
    before: AgentSettings,
    wanted: AgentSettings,
    *,
    reason: str,
    by: Person,
) -> SettingsChange:
    """Ask a second administrator for settings that loosen `before`. A step of an
    operation. Raises TextMissing without a reason, Conflict while one waits."""
    change = SettingsChange(
        agent=agent,
        before=before.to_columns(),
        wanted=wanted.to_columns(),
        digest=agent_settings.compute_digest(agent, before, wanted),
        reason=second_person.read_reason(reason),
        asked_by=by,
        asked_at=clock.now(),
    )
    try:
        with transactions.open_savepoint("Proposing settings"):
            return transitions.settings_change.create(
                change,
                "propose",
                actor=build_actor(by),
                now=change.asked_at,
                private={"reason": change.reason},
                **_build_log_data(change),
            )
    except IntegrityError:
        raise Conflict(WAITS_ALREADY) from None


def write_settings(
    agent: Agent, before: AgentSettings, after: AgentSettings, **more: Any
) -> bool:
    """Write settings, and `more` columns, to an agent that still has those `before`.
    Returns whether it had. A step of an operation."""
    columns = before.to_columns()
    same = Q(
        tools=agent.tools,  # as stored: the order of the names is no difference
        risk_ceiling=columns["risk_ceiling"],
    )
    for name in ("daily_proposals", "daily_money"):
        value = columns[name]
        same &= Q(**({f"{name}__isnull": True} if value is None else {name: value}))
    if agent_settings.load_settings(agent) != before:  # guard: settings-base
        return False
    rows = Agent.objects.filter(same, pk=agent.pk)
    return bool(rows.update(**after.to_columns(), **more))


def void_waiting(waiting: Iterable[SettingsChange], by: Person) -> None:
    """End the changes that wait for an answer because the settings become others. A
    step of an operation, which locked them before it read the settings, and then writes
    others."""
    for change in waiting:
        _make_void(change, by)


def _make_void(change: SettingsChange, by: Person) -> None:
    now = clock.now()
    transitions.settings_change.apply(
        change,
        "void",
        actor=build_actor(by),
        now=now,
        changes={"settled_at": now},
        **_build_log_data(change),
    )


@operation(
    locks="settings change",
    writes="SettingsChange, Agent",
    logs="agent.change_confirmed and agent.changed, or agent.change_void",
)
def confirm_change(*, change_id: int, digest: str, by: Person) -> SettingsChange:
    """Put a loosening in force, exactly as this digest shows it. Returns the change,
    which is void where the agent has other settings by now. Raises NotFound,
    NotPermitted, and Conflict where it does not wait or is not what was shown."""
    change = _lock_answerable(change_id, by)
    if digest != change.digest:  # guard: settings-shown
        raise Conflict(CHANGED)
    agent = Agent.objects.select_related("owner").get(pk=change.agent_id)
    before = agent_settings.build_settings(change.before)
    wanted = agent_settings.build_settings(change.wanted)
    if not write_settings(agent, before, wanted):
        _make_void(change, by)
        return change
    _settle(change, "confirm", by)
    log_agent_change("agent.changed", Agent.objects.get(pk=agent.pk), by, agent)
    return change


@operation(
    locks="settings change", writes="SettingsChange", logs="agent.change_refused"
)
def refuse_change(*, change_id: int, by: Person, reason: str) -> SettingsChange:
    """Refuse a loosening. Raises NotFound, NotPermitted, TextMissing, Conflict when it
    does not wait."""
    change = _lock_answerable(change_id, by)
    return _settle(change, "refuse", by, second_person.read_reason(reason))


@operation(
    locks="settings change", writes="SettingsChange", logs="agent.change_withdrawn"
)
def withdraw_change(*, change_id: int, by: Person) -> SettingsChange:
    """Withdraw a change that this administrator asked for. Raises NotFound,
    NotPermitted, Conflict when it does not wait."""
    people.check_administrator(by)
    change = locks.lock_settings_change(change_id)
    return second_person.withdraw_row(
        transitions.settings_change,
        change,
        person=by,
        open_status=SettingsStatus.PROPOSED,
        log_data=_build_log_data(change),
    )


@operation(
    locks="settings changes (skip locked)",
    writes="SettingsChange",
    logs="agent.change_lapsed",
)
def lapse_changes() -> int:
    """End the changes that nobody answered within a week. Returns how many."""
    return second_person.lapse_unanswered(
        transitions.settings_change, list_waiting(), _build_log_data
    )


def list_waiting() -> QuerySet[SettingsChange]:
    """The changes that wait for an answer, oldest first."""
    rows = SettingsChange.objects.filter(status=SettingsStatus.PROPOSED)
    return rows.select_related("agent", "asked_by").order_by("asked_at")


def describe_why_no_answer(change: SettingsChange, by: Person) -> str:
    """Why this administrator may not confirm or refuse; empty when they may."""
    if by.pk == change.asked_by_id:  # guard: settings-second-person
        return "You asked for it. Another administrator must answer."
    return ""


def _lock_answerable(change_id: int, by: Person) -> SettingsChange:
    people.check_administrator(by)
    change = locks.lock_settings_change(change_id)
    why_not = describe_why_no_answer(change, by)
    second_person.check_may_answer(change, why_not, SettingsStatus.PROPOSED)
    return change


def _settle(
    change: SettingsChange, event: str, by: Person, refusal: str = ""
) -> SettingsChange:
    return second_person.settle_row(
        transitions.settings_change,
        change,
        event,
        person=by,
        refusal=refusal,
        log_data=_build_log_data(change),
    )


def _build_log_data(change: SettingsChange) -> dict[str, Any]:
    differs = [
        name for name in change.wanted if change.wanted[name] != change.before[name]
    ]
    data = {
        "agent": change.agent.slug,
        "before": {name: change.before[name] for name in differs},
        "wanted": change.wanted,
    }
    return {"data": data}


def log_agent_change(
    kind: str, agent: Agent, by: Person, former: Agent | None = None
) -> None:
    """Log what an agent is and may do from now on, and with its `former` row what was
    otherwise before. Caller holds a transaction."""
    now = _describe_agent(agent)
    before = _describe_agent(former) if former else now
    differs = {name: value for name, value in before.items() if value != now[name]}
    data = {**now, "before": differs} if former else now
    log.append(kind, actor=build_actor(by), at=clock.now(), agent=agent.slug, data=data)


def _describe_agent(agent: Agent) -> dict[str, Any]:
    return {
        "agent": agent.slug,
        "owner": agent.owner.public_id,
        "tools": sorted(agent.tools),
        "risk_ceiling": agent.risk_ceiling,
        "unattended": agent.unattended,
        "version": agent.version,
        "daily_proposals": agent.daily_proposals,
        "daily_money": agent.daily_money,
    }
