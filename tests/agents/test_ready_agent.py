"""The agent for which a private gate is ready."""

from __future__ import annotations

from typing import Any

import pytest

from agents import keys, ready_agent
from agents.models import Agent, AgentKey
from policies.models import Person
from tests import factories
from tests.conftest import Gate


@pytest.fixture
def key(settings: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """The key that this installation keeps; the user of this machine is Ann Lee."""
    monkeypatch.setattr("getpass.getuser", lambda: "Ann.Lee")
    text = keys.create_key()
    changed = settings.COUNTERSEAL.model_copy(update={"agent_key": text})
    settings.COUNTERSEAL = changed
    return text


def test_it_is_named_after_the_user_and_may_propose_every_tool(
    gate: Gate, key: str
) -> None:
    for _ in range(2):
        ready_agent.ensure_ready_agent(owner=gate.owen, by=gate.adam)
    agent = keys.authenticate_key(key).agent
    assert (agent.slug, agent.owner) == ("ann-lee", gate.owen)
    assert agent == ready_agent.find_ready_agent()
    assert agent.may_propose("whatever a later policy declares")
    assert not gate.agent.may_propose("nothing")


def test_a_key_that_people_revoked_stays_so(gate: Gate, key: str) -> None:
    ready_agent.ensure_ready_agent(owner=gate.owen, by=gate.adam)
    row = AgentKey.objects.get(agent__slug="ann-lee")
    keys.revoke_key(key=row, by=gate.owen)
    ready_agent.ensure_ready_agent(owner=gate.owen, by=gate.adam)
    assert ready_agent.find_ready_agent() is None
    assert Agent.objects.filter(owner=gate.owen).count() == 2


def test_a_name_that_is_taken(gate: Gate, key: str) -> None:
    other = factories.agent(gate.owen, slug="ann-lee")
    keys.issue_key(agent=other, by=gate.owen)
    ready_agent.ensure_ready_agent(owner=gate.owen, by=gate.adam)
    found = ready_agent.find_ready_agent()
    assert found
    assert found.slug.startswith("ann-lee-")


def test_a_start_that_was_cut_off_goes_on(gate: Gate, key: str) -> None:
    unfinished = factories.agent(gate.owen, slug="ann-lee", tools=["*"])
    ready_agent.ensure_ready_agent(owner=gate.owen, by=gate.adam)
    assert ready_agent.find_ready_agent() == unfinished


def test_without_a_key_there_is_none(gate: Gate, settings: Any) -> None:
    update = {"agent_key": ""}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)
    ready_agent.ensure_ready_agent(owner=gate.owen, by=gate.adam)
    assert ready_agent.find_ready_agent() is None


@pytest.mark.parametrize("text", ["cs_", "csp_12345678_x", "cs_12345678_short"])
def test_a_text_that_is_no_key_is_never_one(gate: Gate, text: str) -> None:
    owner: Person = gate.owen
    with pytest.raises(ValueError, match="must be a key"):
        keys.issue_key(agent=gate.agent, by=owner, text=text)
