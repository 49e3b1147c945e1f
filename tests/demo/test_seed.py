"""The demo's people, policy and key: made once, kept for good, and working."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from guardian.shortcuts import get_users_with_perms

from agents import keys
from demo import handover, seed
from demo.store.effects import EFFECTS
from policies import active, versions
from policies.choices import Role
from policies.models import Person, PolicyVersion, Queue
from reviews.people import tokens

pytestmark = pytest.mark.django_db(transaction=True)
STORE = "http://127.0.0.1:8010"


def seeded(state: Path, store_url: str = STORE) -> dict[str, Any]:
    path = seed.seed(state=state, base_url="http://127.0.0.1:8000", store_url=store_url)
    data: dict[str, Any] = json.loads(path.read_text())
    return data


def test_demo_json_has_the_shape_of_the_contract_and_is_private(tmp_path):
    data = seeded(tmp_path)
    assert data["base_url"] == "http://127.0.0.1:8000"
    assert data["store_url"] == STORE
    assert set(data["logins"]) == {
        "reviewer",
        "reviewer2",
        "supervisor",
        "supervisor2",
        "administrator",
        "administrator2",
        "auditor",
        "owner",
    }
    assert all(
        set(login) == {"username", "password", "token"}
        for login in data["logins"].values()
    )
    assert stat.S_IMODE((tmp_path / "demo.json").stat().st_mode) == 0o600


def test_every_password_token_and_key_works(tmp_path, rf):
    data = seeded(tmp_path)
    for login in data["logins"].values():
        person = authenticate(
            rf.post("/"), username=login["username"], password=login["password"]
        )
        assert isinstance(person, Person)
        assert tokens.authenticate_token(login["token"]) == person
    agent = keys.authenticate_key(data["agent_key"]).agent
    assert agent.slug == "riley"
    assert agent.owner.username == "owen"
    assert set(agent.tools) == set(EFFECTS)


def test_a_second_run_changes_nothing(tmp_path):
    first = seeded(tmp_path)
    assert seeded(tmp_path) == first
    assert PolicyVersion.objects.count() == 1


def test_two_installations_have_different_passwords(tmp_path):
    first = seeded(tmp_path / "a")
    second = seeded(tmp_path / "b")
    assert (
        first["logins"]["reviewer"]["password"]
        != (second["logins"]["reviewer"]["password"])
    )


def test_a_lost_file_leads_to_new_secrets_that_work(tmp_path, rf):
    seeded(tmp_path)
    (tmp_path / "demo.json").unlink()
    data = seeded(tmp_path)
    login = data["logins"]["supervisor"]
    assert authenticate(
        rf.post("/"), username=login["username"], password=login["password"]
    )
    assert keys.authenticate_key(data["agent_key"]).agent.slug == "riley"
    assert data["policy_version"] == active.load_active_policy().number


def test_a_password_changed_by_its_person_stays_theirs(tmp_path):
    seeded(tmp_path)
    rita = Person.objects.get(username="rita")
    rita.set_password("rita's own choice")
    rita.save()
    seeded(tmp_path)
    rita.refresh_from_db()
    assert rita.check_password("rita's own choice")


def test_the_policy_is_written_by_one_and_activated_by_another(tmp_path):
    seeded(tmp_path)
    policy = active.load_active_policy()
    assert policy.author.username == "adam"
    assert policy.activated_by is not None
    assert policy.activated_by.username == "alma"
    tool = active.load_document(policy).tools["process_refund"]
    assert tool.executor.url == f"{STORE}/effects/process_refund"  # type: ignore[union-attr]


def test_another_address_of_the_store_makes_a_new_version(tmp_path):
    first = seeded(tmp_path)
    second = seeded(tmp_path, "http://127.0.0.1:9999")
    assert second["policy_version"] == first["policy_version"] + 1
    tool = active.load_document(active.load_active_policy()).tools["process_refund"]
    assert "9999" in tool.executor.url  # type: ignore[union-attr]


def test_a_policy_that_people_put_in_force_is_left_alone(tmp_path):
    seeded(tmp_path)
    document = dict(active.load_active_policy().document)
    document["name"] = "ours"
    draft = versions.save_draft(
        text_or_mapping=document, author=Person.objects.get(username="alma")
    )
    versions.activate_version(
        version_id=draft.pk, by=Person.objects.get(username="adam")
    )
    assert seeded(tmp_path, "http://127.0.0.1:9999")["policy_version"] is None
    assert active.load_active_policy().pk == draft.pk


def test_reviewers_and_supervisors_decide_where_they_belong(tmp_path):
    seeded(tmp_path)

    def deciders(queue: str) -> set[str]:
        found: Any = get_users_with_perms(
            Queue.objects.get(name=queue), only_with_perms_in=["decide"]
        )
        return {person.username for person in found}

    assert deciders("refunds") == {"rita", "tom", "sue", "sam"}
    assert deciders("oncall") == {"sue", "sam"}
    assert deciders("bulk-mail") == {"sue", "sam"}


def test_reviewers_have_a_ceiling_and_supervisors_have_none(tmp_path):
    seeded(tmp_path)
    ceilings = dict(Person.objects.values_list("username", "ceiling_minor"))
    assert ceilings["rita"] == ceilings["tom"] == 50_000
    assert ceilings["sue"] is None
    roles = Person.objects.get(username="sue").groups.values_list("name", flat=True)
    assert list(roles) == [Role.SUPERVISOR]


def test_the_command_seeds_this_installation(tmp_path, settings, capsys):
    settings.HOLDPOINT = settings.HOLDPOINT.model_copy(update={"state": tmp_path})
    call_command("seed_demo")
    assert "demo.json" in capsys.readouterr().out
    assert handover.read(tmp_path / "demo.json")["agent_key"]


def test_half_a_file_is_no_file(tmp_path):
    path = tmp_path / "demo.json"
    path.write_text('{"agent_key": "hp_')
    assert handover.read(path) == {}


def test_the_store_answers_where_the_environment_says():
    assert seed.store_url({}) == "http://127.0.0.1:8010"
    assert seed.store_url({"STORE_PORT": "9010"}) == "http://127.0.0.1:9010"
    assert seed.store_url({"STORE_URL": "http://a"}) == "http://a"
