"""What tightens an agent's settings and what loosens them, at the same moment."""

from __future__ import annotations

from functools import partial

import pytest

from agents import registry, setting_changes
from agents.models import Agent, SettingsChange
from agents.registry import AgentChange
from tests.agents.loosening import ask
from tests.conftest import Gate
from tests.races.together import at_once

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_a_tighter_limit_wins_over_a_confirmation(gate: Gate) -> None:
    """Whichever comes first: the confirmation is void, or is tightened after it."""
    for _ in range(5):
        Agent.objects.update(daily_money={"USD": "100.00"})
        change = ask(gate, AgentChange(daily_money={"USD": "900.00"}))
        confirm = partial(
            setting_changes.confirm_change,
            change_id=change.pk,
            digest=change.digest,
            by=gate.alma,
        )
        tighten = partial(
            registry.change_agent,
            agent=gate.agent,
            change=AgentChange(daily_money={"USD": "10.00"}),
            by=gate.adam,
        )
        _, tightened = at_once(confirm, tighten)
        assert tightened.won
        assert tightened.value is None
        assert Agent.objects.get().daily_money == {"USD": "10.00"}
        change.refresh_from_db()
        assert change.status in {"confirmed", "void"}


def test_one_of_two_answers_counts(gate: Gate) -> None:
    Agent.objects.update(daily_proposals=1)
    change = ask(gate, AgentChange(daily_proposals=2))
    answer = partial(
        setting_changes.confirm_change,
        change_id=change.pk,
        digest=change.digest,
        by=gate.alma,
    )
    results = at_once(*[answer] * 4)
    assert sum(result.won for result in results) == 1
    assert Agent.objects.get().daily_proposals == 2


def test_one_of_many_requests_waits(gate: Gate) -> None:
    Agent.objects.update(daily_proposals=1)
    results = at_once(
        *[
            partial(ask, gate, AgentChange(daily_proposals=number))
            for number in range(2, 8)
        ]
    )
    assert sum(result.won for result in results) == 1
    assert SettingsChange.objects.count() == 1
