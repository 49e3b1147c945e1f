"""What an agent may propose and move within 24 hours, over all its tools, and the
refusal of what is more. The limits are read under one lock of the agent, so that no two
proposals are the last that fits."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from journal.errors import AgentRateLimited
from policies import budgets, money
from policies.budgets import DAY
from policies.money import Money
from reviews.governance.ruling import ProposedAction, sum_moved_money
from reviews.models import Proposal
from reviews.stops.gate_state import GateState

from .models import Agent


def has_daily_limit(agent: Agent) -> bool:
    """Whether the agent's proposals must be counted one after the other."""
    return agent.daily_proposals is not None or agent.daily_money is not None


def select_day_proposals(agent: Agent, now: datetime) -> QuerySet[Proposal]:
    """The proposals that count towards the agent's limit."""
    return Proposal.objects.filter(agent=agent.slug, created_at__gt=now - DAY)


def list_money_uses(agent: Agent, now: datetime) -> list[tuple[Money, Money]]:
    """What the agent may move of each currency of its budget, and what is used."""
    budget = agent.daily_money or {}
    used = budgets.load_used(agent.slug, budget, now) if budget else {}
    return [
        (money.parse(text, code), Money(used[code], code))
        for code, text in sorted(budget.items())
    ]


def describe_limits(agent: Agent, now: datetime) -> dict[str, Any]:
    """The agent's limits in 24 hours and what is left of them now, as the API and the
    commands write them; None for no limit."""
    most = agent.daily_proposals
    recent = 0 if most is None else select_day_proposals(agent, now).count()
    left = [
        (limit, Money(max(limit.minor - used.minor, 0), limit.currency))
        for limit, used in list_money_uses(agent, now)
    ]
    return {
        "daily_proposals": None
        if most is None
        else {"limit": most, "left": max(most - recent, 0)},
        "daily_money": [
            {
                "currency": limit.currency,
                "limit": money.format_amount(limit),
                "left": money.format_amount(rest),
            }
            for limit, rest in left
        ]
        or None,
    }


def check_daily_limit(agent: Agent, now: datetime) -> None:
    """Raise AgentRateLimited when the agent has proposed as much within 24 hours as it
    may. A repeat that joins an open request is none. Caller holds the lock of
    `locks.lock_daily_limit`."""
    if agent.daily_proposals is None:
        return
    times = (
        select_day_proposals(agent, now)
        .order_by("-created_at")
        .values_list("created_at", flat=True)
    )
    last = agent.daily_proposals - 1
    oldest = next(iter(times[last : last + 1]), None)  # the last that it may have
    if oldest is not None:  # guard: agent-daily-limit
        raise AgentRateLimited(
            f"This agent may propose {agent.daily_proposals} actions in 24 hours, and"
            " it has. Nothing was proposed.",
            retry_after=int((oldest + DAY - now).total_seconds()) + 1,
        )


def check_daily_money(
    agent: Agent,
    action: ProposedAction,
    state: GateState,
    *,
    apart_from: Sequence[str] = (),
) -> None:
    """Raise AgentRateLimited when the action would move more money than is left of the
    agent's budget. `apart_from` are proposals that end with this one, or the one of
    which it is a revision. Caller holds the lock of `locks.lock_daily_limit`."""
    if agent.daily_money is None:
        return
    moved = sum_moved_money(action, state.policy)
    wanted = {code: minor for code, minor in moved.items() if minor}
    used = budgets.load_used(agent.slug, wanted, state.now, apart_from=apart_from)
    for code in sorted(wanted):
        limit = budgets.load_limit(agent.daily_money, code)
        if limit is None:
            raise _build_unnamed_refusal(agent, code)
        if used[code] + wanted[code] > limit.minor:  # guard: agent-daily-money
            raise _build_refusal(agent, limit, used[code], wanted[code], state.now)


def _build_refusal(
    agent: Agent, limit: Money, used: int, wanted: int, now: datetime
) -> AgentRateLimited:
    code = limit.currency
    left = Money(max(limit.minor - used, 0), code)
    asks = money.format_money(Money(wanted, code))
    wait = " now, wait" if wanted <= limit.minor else ""
    repair = f"Propose at most {money.format_money(left)}{wait}"
    if not left.minor:
        repair = "Wait" if wait else "Propose nothing that moves it"
    room = budgets.find_time_of_room(agent.slug, limit, wanted, now)
    until = DAY if room is None else min(room - now, DAY)
    return AgentRateLimited(
        f"This agent may move {money.format_money(limit)} in 24 hours. Its proposals"
        f" use {money.format_money(Money(used, code))}, and this one moves {asks}."
        f" Nothing was proposed. {repair}, or ask an administrator for a higher budget"
        " of money.",
        retry_after=max(int(until.total_seconds()) + 1, 1),
    )


def _build_unnamed_refusal(agent: Agent, code: str) -> AgentRateLimited:
    named = " and ".join(sorted(agent.daily_money or {}))
    moves = f"moves {code}" if code else "moves an amount in no known currency"
    return AgentRateLimited(
        f"This agent has a budget of money in {named}, and this action {moves}."
        " Nothing was proposed. Propose it in a currency of the budget, or ask an"
        " administrator to add the currency to it.",
        retry_after=int(DAY.total_seconds()),
    )
