"""The demo's people, policy and key: made once, kept for good, and working."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command

from agents import keys
from demo.seed import ACCOUNTS, seed
from demo.store.effects import EFFECTS
from policies import active, versions
from policies.choices import Role
from policies.models import Person, PolicyVersion, Queue
from reviews.people import tokens
from tests.policies import store

pytestmark = pytest.mark.django_db(transaction=True)
STORE = "http://127.0.0.1:8010"


def seeded(state: Path, store_url: str = STORE) -> dict[str, Any]:
    path = seed(state=state, base_url="http://127.0.0.1:8000", store_url=store_url)
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def check_secrets(data: dict[str, Any], rf: Any) -> None:
    """Every password, token and key works."""
    for login in data["logins"].values():
        person = authenticate(
            rf.post("/"), username=login["username"], password=login["password"]
        )
        assert isinstance(person, Person)
        assert tokens.authenticate_token(login["token"]) == person
    agent = keys.authenticate_key(data["agent_key"]).agent
    assert (agent.slug, agent.owner.username) == ("riley", "owen")
    assert set(agent.tools) == set(EFFECTS)


def test_demo_json_has_the_shape_of_the_contract_and_is_private(tmp_path, rf):
    data = seeded(tmp_path)
    assert data["base_url"] == "http://127.0.0.1:8000"
    assert data["store_url"] == STORE
    assert set(data["logins"]) == {account.name for account in ACCOUNTS}
    assert stat.S_IMODE((tmp_path / "demo.json").stat().st_mode) == 0o600
    check_secrets(data, rf)


def test_a_second_run_changes_nothing(tmp_path):
    first = seeded(tmp_path)
    assert seeded(tmp_path) == first
    assert PolicyVersion.objects.count() == 1


@pytest.mark.parametrize("left", ["", '{"agent_key": "cs_'])
def test_a_lost_or_torn_file_leads_to_new_secrets_that_work(tmp_path, rf, left):
    first = seeded(tmp_path)
    (tmp_path / "demo.json").write_text(left)
    data = seeded(tmp_path)
    check_secrets(data, rf)
    assert data["logins"]["reviewer"] != first["logins"]["reviewer"]
    assert data["policy_version"] == store.load_active_policy().number


def test_a_password_changed_by_its_person_stays_theirs(tmp_path):
    seeded(tmp_path)
    rita = Person.objects.get(username="rita")
    rita.set_password("rita's own choice")
    rita.save()
    seeded(tmp_path)
    rita.refresh_from_db()
    assert rita.check_password("rita's own choice")


def test_another_address_of_the_store_makes_a_new_version(tmp_path):
    first = seeded(tmp_path)
    second = seeded(tmp_path, "http://127.0.0.1:9999")
    assert second["policy_version"] == first["policy_version"] + 1
    tool = active.load_document(store.load_active_policy()).tools["process_refund"]
    assert tool.executor.url == "http://127.0.0.1:9999/effects/process_refund"  # type: ignore[union-attr]


def test_a_policy_that_people_put_in_force_is_left_alone(tmp_path):
    seeded(tmp_path)
    document = {**store.load_active_policy().document, "name": "ours"}
    alma, adam = (Person.objects.get(username=name) for name in ("alma", "adam"))
    draft = versions.save_draft(text_or_mapping=document, author=alma)
    versions.activate_version(version_id=draft.pk, by=adam)
    assert seeded(tmp_path, "http://127.0.0.1:9999")["policy_version"] is None
    assert store.load_active_policy().pk == draft.pk


def test_reviewers_have_a_ceiling_and_supervisors_decide_in_every_queue(tmp_path):
    seeded(tmp_path)
    sue = Person.objects.get(username="sue")
    assert all(sue.has_perm("policies.decide", queue) for queue in Queue.objects.all())
    ceilings = dict(Person.objects.values_list("username", "ceiling_minor"))
    assert ceilings["rita"] == ceilings["tom"] == 50_000
    assert ceilings["sue"] is None
    assert list(sue.groups.values_list("name", flat=True)) == [Role.SUPERVISOR]


def test_the_command_seeds_this_installation(tmp_path, settings, capsys, monkeypatch):
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update={"state": tmp_path})
    monkeypatch.setenv("STORE_PORT", "9010")
    call_command("seed_demo")
    assert "demo.json" in capsys.readouterr().out
    data = json.loads((tmp_path / "demo.json").read_text())
    assert data["store_url"] == "http://127.0.0.1:9010"
