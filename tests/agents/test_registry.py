from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents import keys, registry
from agents.models import Agent
from agents.registry import NewAgent
from agents.webhooks import endpoints
from journal.errors import Conflict, NotPermitted
from journal.models import LogRecord
from tests import factories
from tests.conftest import Gate

URL = "https://hooks.example.com/riley"


def test_registering_is_a_record_with_owner_and_tools(gate: Gate) -> None:
    registry.register_agent(
        new=NewAgent("ada", "Ada", gate.owen, ["look"]), by=gate.adam
    )
    assert LogRecord.objects.filter(kind="agent.registered", agent="ada").exists()


def test_a_name_is_given_once(gate: Gate) -> None:
    with pytest.raises(Conflict):
        registry.register_agent(new=NewAgent("riley", "R", gate.owen, []), by=gate.adam)


def test_an_administrator_registers_and_the_owner_too_releases(gate: Gate) -> None:
    count = LogRecord.objects.count()
    with pytest.raises(NotPermitted):
        registry.register_agent(new=NewAgent("ada", "Ada", gate.owen, []), by=gate.rita)
    with pytest.raises(NotPermitted):
        registry.release_version(agent=gate.agent, version="2", by=gate.rita)
    with pytest.raises(NotPermitted):
        endpoints.register_endpoint(agent=gate.agent, url=URL, by=gate.rita)
    assert LogRecord.objects.count() == count
    registry.release_version(agent=gate.agent, version="2", by=gate.owen)


def test_the_command_prints_a_key_that_works(gate: Gate) -> None:
    out = StringIO()
    call_command(
        "register_agent", "ada", owner="owen", by="adam", tools=["look"], stdout=out
    )
    assert keys.authenticate_key(out.getvalue().strip()).agent == Agent.objects.get(
        slug="ada"
    )


def test_a_release_is_a_record_and_marks_what_is_proposed_from_then_on(
    gate: Gate,
) -> None:
    before = factories.propose(gate.agent)
    call_command("release_agent", "riley", "2026.11", by="adam")
    after = factories.propose(Agent.objects.get(slug="riley"), thread="t-2")
    assert [one.current.agent_version for one in (before, after)] == ["", "2026.11"]
    record = LogRecord.objects.get(kind="agent.released", agent="riley")
    assert b'"version":"2026.11"' in bytes(record.leaf)


def test_an_edit_by_a_person_keeps_the_version_that_proposed(gate: Gate) -> None:
    gate.agent.version = "2026.11"
    proposal = factories.propose(gate.agent)
    args = {**proposal.current.args, "amount": "39.00"}
    sent = {"args": args, "reason_code": "wrong_amount"}
    factories.decide(proposal.request, gate.rita, "modify", **sent)
    proposal.refresh_from_db()
    assert proposal.revision == 2
    assert proposal.current.agent_version == "2026.11"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"slug": "zoe"}, "There is no agent zoe."),
        ({"by": "zoe"}, "There is no user zoe."),
        ({"agent_version": "x" * 65}, "at most 64 characters"),
    ],
)
def test_a_release_says_what_is_wrong(
    gate: Gate, words: dict[str, str], said: str
) -> None:
    told = {"slug": "riley", "agent_version": "2", "by": "adam", **words}
    with pytest.raises(CommandError, match=said):
        call_command(
            "release_agent", told["slug"], told["agent_version"], by=told["by"]
        )
    assert Agent.objects.get().version == ""


def test_the_command_names_who_is_missing(gate: Gate) -> None:
    with pytest.raises(CommandError, match="There is no user zoe"):
        call_command("register_agent", "ada", owner="zoe", by="adam")
