"""Looser settings of an agent, as two administrators make them."""

from __future__ import annotations

from agents import registry, setting_changes
from agents.models import SettingsChange
from agents.registry import AgentChange
from tests.conftest import Gate


def ask(gate: Gate, change: AgentChange) -> SettingsChange:
    """What Adam asks for, which must wait."""
    proposed = registry.change_agent(
        agent=gate.agent, change=change, by=gate.adam, reason="It does more now."
    )
    assert proposed is not None
    return proposed


def loosen(gate: Gate, change: AgentChange) -> SettingsChange:
    """What Adam asked for and Alma confirmed."""
    asked = ask(gate, change)
    settled = setting_changes.confirm_change(
        change_id=asked.pk, digest=asked.digest, by=gate.alma
    )
    gate.agent.refresh_from_db()
    return settled
