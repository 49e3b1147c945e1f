"""Agents as rows of a command's output."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.db.models.functions import Now

from agents import budgets
from agents.models import Agent
from reviews.presenters import inert

VALID_KEY = Q(keys__revoked_at__isnull=True) & (
    Q(keys__expires_at__isnull=True) | Q(keys__expires_at__gt=Now())
)


def select_agents() -> QuerySet[Agent]:
    """The agents, annotated for `describe_agent`."""
    return Agent.objects.annotate(
        owned_by=F("owner__username"), valid=Count("keys", filter=VALID_KEY)
    ).order_by("slug")


def describe_agent(agent: Agent, now: datetime, *, in_json: bool) -> dict[str, Any]:
    """One agent of `select_agents` by labels; two queries if it has limits."""
    limits = budgets.describe_limits(agent, now)
    return {
        "agent": agent.slug,
        "owner": agent.owned_by,  # type: ignore[attr-defined]
        "risk_up_to": agent.risk_ceiling,
        "version": inert.format_line(agent.version),
        "valid_keys": agent.valid,  # type: ignore[attr-defined]
        **(limits if in_json else format_limits(limits)),
        "tools": sorted(agent.tools),
    }


def format_limits(limits: dict[str, Any]) -> dict[str, str]:
    """`budgets.describe_limits` for people: `3 of 20 left`; empty for no limit."""
    actions, sums = limits["daily_proposals"], limits["daily_money"] or []
    return {
        "daily_proposals": f"{actions['left']} of {actions['limit']} left"
        if actions
        else "",
        "daily_money": ", ".join(
            f"{part['left']} of {part['limit']} {part['currency']} left"
            for part in sums
        ),
    }
