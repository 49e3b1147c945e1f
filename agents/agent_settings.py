"""What an agent may propose, as settings that can be compared: what of a change allows
nothing new, and what loosens. Pure but for `load_settings` of a row."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from journal import canonical
from policies import budgets, money
from policies.choices import Risk
from policies.documents import EVERY_TOOL

from .models import Agent


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings that say how much an agent may do. `tools` are sorted names or
    EVERY_TOOL; without a limit a number or a budget is None."""

    tools: tuple[str, ...]
    risk_ceiling: Risk
    daily_proposals: int | None
    daily_money: Mapping[str, str] | None

    def to_columns(self) -> dict[str, Any]:
        """The values of the agent's columns."""
        return {**asdict(self), "tools": list(self.tools)}


# Those of a new agent, until two administrators agree on more.
NOTHING = AgentSettings((), Risk.LOW, None, None)


def build_settings(columns: Mapping[str, Any]) -> AgentSettings:
    """The settings with these values of the agent's columns."""
    return AgentSettings(
        tools=tuple(sorted(set(columns["tools"]))),
        risk_ceiling=Risk(columns["risk_ceiling"]),
        daily_proposals=columns["daily_proposals"],
        daily_money=columns["daily_money"],
    )


def load_settings(agent: Agent) -> AgentSettings:
    """The settings in the agent's row."""
    names = [part.name for part in fields(AgentSettings)]
    return build_settings({name: getattr(agent, name) for name in names})


def narrow(before: AgentSettings, wanted: AgentSettings) -> AgentSettings:
    """The part of the wanted settings that allows nothing which `before` does not. It
    is `wanted` itself where nothing loosens."""
    return replace(
        wanted,
        tools=_narrow_tools(before.tools, wanted.tools),
        risk_ceiling=min(
            before.risk_ceiling, wanted.risk_ceiling, key=lambda risk: risk.rank
        ),
        daily_proposals=_narrow_number(before.daily_proposals, wanted.daily_proposals),
        daily_money=_narrow_money(before.daily_money, wanted.daily_money),
    )


def _narrow_tools(before: Iterable[str], wanted: Iterable[str]) -> tuple[str, ...]:
    if EVERY_TOOL in before:
        return tuple(wanted)
    if EVERY_TOOL in wanted:
        return tuple(before)
    return tuple(sorted({*before} & {*wanted}))


def _narrow_number(before: int | None, wanted: int | None) -> int | None:
    known = [number for number in (before, wanted) if number is not None]
    return min(known, default=None)


def _narrow_money(
    before: Mapping[str, str] | None, wanted: Mapping[str, str] | None
) -> Mapping[str, str] | None:
    if before is None or wanted is None:
        return before if wanted is None else wanted
    most = {code: _read_minor(before, code) for code in wanted}
    if all(_read_minor(wanted, code) <= minor for code, minor in most.items()):
        return wanted
    smaller = {
        code: wanted[code] if _read_minor(wanted, code) <= minor else before[code]
        for code, minor in most.items()
        if code in before
    }
    # An empty budget would be none at all.
    nothing = {
        code: money.format_amount(money.Money(0, code)) for code in sorted(before)
    }
    return smaller or nothing


def _read_minor(budget: Mapping[str, str], code: str) -> int:
    limit = budgets.load_limit(budget, code)
    return limit.minor if limit else 0


def describe_difference(before: AgentSettings, after: AgentSettings) -> list[str]:
    """What differs between two settings, for people, a sentence for each."""
    lines = []
    if added := [name for name in after.tools if name not in before.tools]:
        names = "every tool of the policy" if EVERY_TOOL in added else ", ".join(added)
        lines.append(f"may {'also ' if before.tools else ''}propose {names}")
    if before.risk_ceiling is not after.risk_ceiling:
        lines.append(
            f"maximum risk {after.risk_ceiling} instead of {before.risk_ceiling}"
        )
    if before.daily_proposals != after.daily_proposals:
        old, new = before.daily_proposals, after.daily_proposals
        limit = "no limit of proposals" if new is None else f"{new} proposals"
        former = "no limit" if old is None else old
        lines.append(f"{limit} in 24 hours instead of {former}")
    if before.daily_money != after.daily_money:
        lines.append(
            f"{_describe_money(after.daily_money)} in 24 hours instead of"
            f" {_describe_money(before.daily_money)}"
        )
    return lines


def _describe_money(budget: Mapping[str, str] | None) -> str:
    return " and ".join(budgets.format_budget(budget)) or "no limit of money"


def compute_digest(agent: Agent, before: AgentSettings, wanted: AgentSettings) -> str:
    """The digest of a change, which the page shows and whoever confirms sends back."""
    text = canonical.encode(
        {
            "agent": agent.slug,
            "before": before.to_columns(),
            "wanted": wanted.to_columns(),
        }
    )
    return f"sha256:{hashlib.sha256(text).hexdigest()}"
