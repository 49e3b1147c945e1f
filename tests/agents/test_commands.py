"""Agents and their keys by command: what changes, who may, and what is recorded."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from agents import intake, keys, setting_changes
from agents.models import AgentKey
from journal.errors import InvalidAgentKey, ToolNotAllowed
from journal.models import LogRecord
from reviews import permissions
from tests import factories
from tests.conftest import Gate
from tests.factories import propose


def run(*args: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out, **options)
    return out.getvalue()


def test_tools_are_replaced_by_name_and_pattern(gate: Gate) -> None:
    said = run("change_agent", "riley", "--tool", "pay*", "--tool", "look", by="adam")
    gate.agent.refresh_from_db()
    assert "look" in gate.agent.tools
    assert {name for name in gate.agent.tools if name != "look"} == {
        name for name in factories.ARGS if name.startswith("pay")
    }
    assert "look" in said
    with pytest.raises(ToolNotAllowed):
        intake.build_proposal_input(gate.agent, factories.proposal_body("tag"))
    record = LogRecord.objects.get(kind="agent.changed", agent="riley")
    assert gate.adam.public_id in bytes(record.leaf).decode()


def test_tools_are_added_and_removed(gate: Gate) -> None:
    run("change_agent", "riley", "--tool=look", by="adam")
    told = run(
        "change_agent",
        "riley",
        "--add-tool=pay",
        "--remove-tool=lo*",
        "--reason=It pays now.",
        by="adam",
    )
    assert "waits for a second administrator" in told
    gate.agent.refresh_from_db()
    assert gate.agent.tools == []
    change = gate.agent.changes.get()
    setting_changes.confirm_change(
        change_id=change.pk, digest=change.digest, by=gate.alma
    )
    gate.agent.refresh_from_db()
    assert gate.agent.tools == ["pay"]
    with pytest.raises(CommandError, match="Say why"):
        run("change_agent", "riley", "--add-tool=look", by="adam")


def test_what_no_tool_is_called_is_refused_and_said(gate: Gate) -> None:
    before = gate.agent.tools
    with pytest.raises(CommandError, match=r"no tool matches files_\*: there are"):
        run("change_agent", "riley", "--tool=files_*", by="adam")
    with pytest.raises(CommandError, match="no tool matches mial"):
        run("change_agent", "riley", "--remove-tool=mial", by="adam")
    with pytest.raises(CommandError, match="a daily limit or an owner"):
        run("change_agent", "riley", by="adam")
    gate.agent.refresh_from_db()
    assert gate.agent.tools == before


def test_a_new_agent_takes_patterns_too(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    run(
        "register_agent", "ada", "--tool=lo*", "--tool=to_come", owner="owen", by="adam"
    )
    agent = AgentKey.objects.get(agent__slug="ada").agent
    assert agent.tools == ["look", "to_come"]
    assert "has no tool to_come" in capsys.readouterr().err


def test_a_lower_ceiling_acts_on_the_next_proposal(gate: Gate) -> None:
    run("change_agent", "riley", risk_ceiling="low", by="adam")
    gate.agent.refresh_from_db()
    assert propose(gate.agent).blocked_by == "agent.risk_ceiling"


def test_a_new_owner_does_not_decide_what_waits(gate: Gate) -> None:
    waiting = propose(gate.agent).request
    other = propose(factories.agent(gate.owen, "other")).request
    run("change_agent", "riley", owner="rita", by="adam")
    for request in (waiting, other):
        request.refresh_from_db()
        request.proposal.refresh_from_db()
    assert permissions.describe_why_cannot_decide(gate.rita, waiting, waiting.sealed)
    assert gate.owen.public_id in waiting.barred
    assert not permissions.describe_why_cannot_decide(gate.rita, other, other.sealed)
    gate.agent.refresh_from_db()
    assert gate.rita.public_id in propose(gate.agent).barred


def test_limits_in_24_hours_tighten_at_once_and_loosen_by_two(gate: Gate) -> None:
    printed = run(
        "change_agent",
        "riley",
        "--daily-proposals=5",
        "--daily-money=500.00 USD",
        "--daily-money=20 EUR",
        by="adam",
    )
    assert "daily proposals: 5 of 5 left" in printed
    assert "20.00 of 20.00 EUR left, 500.00 of 500.00 USD left" in printed
    gate.agent.refresh_from_db()
    money = {"EUR": "20.00", "USD": "500.00"}
    assert (gate.agent.daily_proposals, gate.agent.daily_money) == (5, money)
    printed = run(
        "change_agent",
        "riley",
        "--daily-proposals=0",
        "--daily-money=",
        "--reason=It is trusted.",
        by="adam",
    )
    assert "waits for a second administrator" in printed
    assert "daily proposals: 5 of 5 left" in printed
    change = gate.agent.changes.get()
    setting_changes.confirm_change(
        change_id=change.pk, digest=change.digest, by=gate.alma
    )
    gate.agent.refresh_from_db()
    assert (gate.agent.daily_proposals, gate.agent.daily_money) == (None, None)


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--daily-proposals=-1", "from 1 to 1000000, or 0 for no limit"),
        ("--daily-proposals=1000001", "from 1 to 1000000, or 0 for no limit"),
        ("--daily-money=much", 'write a line such as "500.00 USD"'),
        ("--daily-money=1 USD\n2 USD", "USD stands in two lines"),
    ],
)
def test_a_limit_that_is_none_is_refused_and_said(
    gate: Gate, option: str, error: str
) -> None:
    with pytest.raises(CommandError, match=re.escape(error)):
        run("change_agent", "riley", option, by="adam")
    assert not LogRecord.objects.filter(kind="agent.changed").exists()


@pytest.mark.parametrize("by", ["sue", "owen", "otto"])
def test_only_administrators_change_agents(gate: Gate, by: str) -> None:
    with pytest.raises(CommandError, match="Only an administrator"):
        run("change_agent", "riley", "--tool=look", by=by)
    assert not LogRecord.objects.filter(kind="agent.changed").exists()


def test_keys_overlap_until_one_is_revoked(gate: Gate) -> None:
    first = run("rotate_agent_key", "riley", by="owen").strip()
    second = run("rotate_agent_key", "riley", by="adam", days=30).strip()
    for key in (first, second):
        assert keys.authenticate_key(key).agent == gate.agent
    listed = run("list_agent_keys", "riley").splitlines()
    assert listed[0].startswith(second[:11])
    assert "valid until" in listed[0]
    assert "valid  created" in listed[1]
    assert second.rpartition("_")[2] not in "".join(listed)
    prefix = listed[1].split()[0]
    run("revoke_agent_key", "riley", prefix, by="adam")
    with pytest.raises(InvalidAgentKey):
        keys.authenticate_key(first)
    assert keys.authenticate_key(second).agent == gate.agent
    assert "revoked" in run("list_agent_keys", "riley").splitlines()[1]
    with pytest.raises(CommandError, match="already revoked"):
        run("revoke_agent_key", "riley", prefix, by="adam")
    kinds = LogRecord.objects.filter(kind__startswith="agent.key").order_by("id")
    assert [record.kind for record in kinds] == [
        "agent.key_issued",
        "agent.key_issued",
        "agent.key_revoked",
    ]


def test_other_peoples_agents_get_no_key(gate: Gate) -> None:
    with pytest.raises(CommandError, match="Only an administrator"):
        run("rotate_agent_key", "riley", by="sue")
    keys.issue_key(agent=gate.agent, by=gate.owen)
    prefix = AgentKey.objects.get().prefix
    with pytest.raises(CommandError, match="Only an administrator"):
        run("revoke_agent_key", "riley", prefix, by="rita")
    assert AgentKey.objects.get().revoked_at is None


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("list_agent_keys", "zoe"), "There is no agent zoe"),
        (
            ("revoke_agent_key", "riley", "cs_nothing", "--by=adam"),
            "no key cs_nothing",
        ),
        (("rotate_agent_key", "riley", "--by=adam", "--days=0"), "from 1 to 3650"),
        (("change_agent", "riley", "--by=zoe"), "There is no user zoe"),
    ],
)
def test_errors_are_plain_words(gate: Gate, command: Any, says: str) -> None:
    with pytest.raises(CommandError, match=says):
        run(*command)


def test_an_agent_without_a_key_is_said_to_have_none(gate: Gate) -> None:
    assert run("list_agent_keys", "riley") == "riley has no keys.\n"
