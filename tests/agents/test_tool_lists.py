"""`counterseal agents list` and `show`, `tools list` and `tools show`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import CommandError

from tests import factories
from tests.agents.test_commands import run
from tests.conftest import Gate

ESCAPES = "\x1b]0;x\x07\u202e"


@pytest.fixture
def undeclared(gate: Gate) -> Gate:
    """A gate where an agent has called a tool that no policy declares."""
    factories.hold_unknown_tools(gate.people, "money")
    factories.propose(gate.agent, "wipe_disk", args={"deep": True, "why": ESCAPES})
    return gate


def list_tools() -> dict[str, dict[str, Any]]:
    return {row["tool"]: row for row in json.loads(run("list_tools", json=True))}


def test_the_tools_of_the_policy_and_the_undeclared_ones_are_listed(
    undeclared: Gate,
) -> None:
    rows = list_tools()
    assert rows["pay"]["agents"] == ["riley"]
    assert (rows["pay"]["declared"], rows["pay"]["tier"]) == (True, "approve")
    assert rows["wipe_disk"]["declared"] is False
    assert rows["wipe_disk"]["performed_by"] == "its agent"
    assert rows["wipe_disk"]["agents"] == ["any"]
    heading, *lines = run("list_tools").splitlines()
    assert heading.startswith("tool ")
    assert len(lines) == len(rows)
    assert any(line.startswith("wipe_disk") for line in lines)


def test_one_tool_is_shown_with_its_calls_and_definition(undeclared: Gate) -> None:
    factories.propose(undeclared.agent)
    shown = json.loads(run("show_tool", "pay", json=True))
    assert (shown["calls"], shown["version"]) == (1, 1)
    assert shown["definition"]["schema"]["properties"]
    printed = run("show_tool", "wipe_disk")
    assert "declared: no" in printed
    assert "performed by: its agent" in printed
    assert "\x1b" not in printed


def test_a_tool_that_is_not_there_is_named_without_its_escapes(gate: Gate) -> None:
    with pytest.raises(CommandError, match="no tool erase") as raised:
        run("show_tool", f"erase{ESCAPES}")
    assert "counterseal tools list" in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_agents_are_listed_with_their_valid_keys(gate: Gate) -> None:
    factories.agent(gate.owen, "ada", version=f"1{ESCAPES}", tools=["pay"])
    run("rotate_agent_key", "ada", by="adam")
    rows = {row["agent"]: row for row in json.loads(run("list_agents", json=True))}
    assert (rows["ada"]["owner"], rows["ada"]["tools"]) == ("owen", ["pay"])
    assert rows["ada"]["valid_keys"] == rows["riley"]["valid_keys"] + 1
    printed = run("list_agents")
    assert "\x1b" not in printed
    assert "\u202e" not in printed


def test_what_is_left_of_the_limits_is_listed_and_shown(gate: Gate) -> None:
    """One payment of 240.00 USD within the 24 hours."""
    run(
        "change_agent",
        "riley",
        "--daily-proposals=20",
        "--daily-money=500.00 USD",
        by="adam",
    )
    gate.agent.refresh_from_db()
    factories.propose(gate.agent, amount="240.00")
    limits = {
        "daily_proposals": {"limit": 20, "left": 19},
        "daily_money": [{"currency": "USD", "limit": "500.00", "left": "260.00"}],
    }
    shown = json.loads(run("show_agent", "riley", json=True))
    assert shown.items() >= limits.items()
    (listed,) = json.loads(run("list_agents", json=True))
    assert listed == shown
    printed = run("show_agent", "riley")
    assert "daily proposals: 19 of 20 left" in printed
    assert "daily money: 260.00 of 500.00 USD left" in printed
    assert "19 of 20 left" in run("list_agents")
    with pytest.raises(CommandError, match="no agent zoe: `counterseal agents list`"):
        run("show_agent", "zoe")
