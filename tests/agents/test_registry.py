from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from agents import keys, registry
from agents.models import Agent
from journal.errors import Conflict
from journal.models import LogRecord
from tests.conftest import Gate


def test_registering_is_a_record_with_owner_and_tools(gate: Gate) -> None:
    registry.register(
        slug="ada", name="Ada", owner=gate.owen, tools=["look"], by=gate.adam
    )
    assert LogRecord.objects.filter(kind="agent.registered", agent="ada").exists()


def test_a_name_is_given_once(gate: Gate) -> None:
    with pytest.raises(Conflict):
        registry.register(
            slug="riley", name="R", owner=gate.owen, tools=[], by=gate.adam
        )


def test_the_command_prints_a_key_that_works(gate: Gate) -> None:
    out = StringIO()
    call_command(
        "register_agent", "ada", owner="owen", by="adam", tools=["look"], stdout=out
    )
    assert keys.authenticate(out.getvalue().strip()).agent == Agent.objects.get(
        slug="ada"
    )


def test_the_command_names_who_is_missing(gate: Gate) -> None:
    with pytest.raises(CommandError, match="Nobody is called zoe"):
        call_command("register_agent", "ada", owner="zoe", by="adam")
