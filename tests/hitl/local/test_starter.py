"""What a new gate begins with, and what it keeps at the next start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents import keys, ready_agent
from agents.models import Agent
from hitl.local import preflight, starter, welcome
from hitl.local.layout import InstallationError, Layout, build_layout
from policies import active
from policies.choices import Role
from policies.models import Person, PolicyVersion
from tests import factories
from tests.journeys.test_solo_mode import set_solo

pytestmark = pytest.mark.django_db


@pytest.fixture
def here(tmp_path: Path, settings: Any) -> Layout:
    update = {"agent_key": keys.create_key(), "state": tmp_path}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)
    return build_layout(tmp_path)


def test_an_empty_gate_has_a_policy_and_nobody(here: Layout) -> None:
    for _ in range(2):
        starter.prepare_gate(here)
    assert active.find_active_policy()
    assert not Person.objects.exists()
    assert not here.solo_file.exists()
    (first,) = welcome.describe_way_in(here)
    assert "/setup/" in first
    assert "once there is the first account" in list(welcome.describe_first_call())[-1]


def test_a_solo_gate_has_one_account_and_its_agent(here: Layout, settings: Any) -> None:
    set_solo(settings, True)
    starter.prepare_gate(here)
    made = here.solo_file.read_text()
    assert here.solo_file.stat().st_mode & 0o777 == 0o600
    starter.prepare_gate(here)
    assert here.solo_file.read_text() == made
    person, agent = Person.objects.get(), Agent.objects.get()
    login = json.loads(made)
    assert person.username == login["username"] == ready_agent.find_user_name()
    assert person.check_password(login["password"])
    assert (agent.owner, agent.has_every_tool) == (person, True)
    assert "/sign-in/" in next(welcome.describe_way_in(here))
    assert agent.slug in list(welcome.describe_first_call())[-1]


def test_solo_mode_is_refused_beside_other_people(here: Layout, settings: Any) -> None:
    factories.person("rita", Role.REVIEWER)
    set_solo(settings, True)
    with pytest.raises(InstallationError, match=r"this gate has rita.*STATE=.*-solo"):
        starter.prepare_gate(here)
    assert not PolicyVersion.objects.exists()
    assert not here.solo_file.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}"])
def test_a_login_that_is_none_is_said(here: Layout, settings: Any, text: str) -> None:
    set_solo(settings, True)
    here.solo_file.write_text(text)
    with pytest.raises(InstallationError, match=r"solo\.json cannot be read"):
        starter.prepare_gate(here)


def test_solo_mode_is_for_this_machine_and_has_no_demo(settings: Any) -> None:
    preflight.check_solo("0.0.0.0", demo=True)
    set_solo(settings, True)
    preflight.check_solo("127.0.0.1", demo=False)
    with pytest.raises(InstallationError, match=r"^HOST: .* can be reached"):
        preflight.check_solo("0.0.0.0", demo=False)
    with pytest.raises(InstallationError, match="leave one out"):
        preflight.check_solo("127.0.0.1", demo=True)
