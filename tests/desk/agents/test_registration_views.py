"""Agents in the browser: an administrator registers one, and a key is shown once."""

from __future__ import annotations

import re

import pytest

from agents import keys
from agents.models import Agent, SettingsChange
from journal.errors import InvalidAgentKey
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD
from tests.markup import read_page, read_text

pytestmark = pytest.mark.django_db
NEW = "/register-agent/"


def test_an_administrator_registers_an_agent(gate: Gate, as_: SignIn) -> None:
    adam = as_("adam")
    for name in ("rita", "sue", "otto", "owen"):
        assert as_(name).get(NEW).status_code == 403
        assert NEW not in read_page(as_(name).get("/agents/"))
    assert NEW in read_page(adam.get("/agents/"))
    sent = {
        "slug": "ada",
        "name": "Ada <b>",
        "owner": gate.owen.public_id,
        "tools": ["pay_o*", "repay"],
        "risk_ceiling": "medium",
        "reason": "It answers mails.",
        "password": PASSWORD,
    }
    for field, value in (
        ("password", "wrong"),
        ("tools", "nothing_*"),
        ("tools", "pay_opaqe"),
        ("slug", "a b"),
        ("owner", "u-unheard"),
        ("reason", " "),
    ):
        refused = adam.post(NEW, {**sent, field: value})
        assert refused.status_code == 422, field
        assert "Ada &lt;b&gt;" in read_page(refused)
    assert not Agent.objects.filter(slug="ada").exists()
    done = adam.post(NEW, sent)
    text = re.search(r"cs_\S+", read_text(done, "key"))
    assert text is not None
    assert "may propose nothing until" in read_page(done)
    agent = Agent.objects.get(slug="ada")
    assert keys.authenticate_key(text[0]).agent == agent
    assert (agent.tools, agent.risk_ceiling) == ([], "low")
    assert confirm_settings(as_, "ada", by="adam") != 302
    assert Agent.objects.get(slug="ada").tools == []
    assert confirm_settings(as_, "ada") == 302
    agent = Agent.objects.get(slug="ada")
    assert (agent.tools, agent.risk_ceiling) == (["pay_opaque", "repay"], "medium")
    assert text[0] not in read_page(adam.get("/agents/ada/keys/"))
    taken = adam.post(NEW, sent)
    assert "already registered" in read_text(taken, "problem")


def test_keys_turn_with_an_overlap(gate: Gate, as_: SignIn) -> None:
    path, owen = "/agents/riley/keys/", as_("owen")
    for name, status in (("rita", 404), ("sue", 403), ("adam", 200)):
        assert as_(name).get(path).status_code == status
    former = keys.authenticate_key(keys.issue_key(agent=gate.agent, by=gate.owen))
    wrong = owen.post(path, {"days": "0", "password": PASSWORD})
    assert "1 to" in read_text(wrong, "error-days")
    made = owen.post(path, {"days": "90", "password": PASSWORD})
    text = re.search(r"cs_\S+", read_text(made, "key"))
    assert text is not None
    key = keys.authenticate_key(text[0])
    assert key.expires_at is not None
    former.refresh_from_db()
    assert former.revoked_at is None
    revoke = f"{path}{key.pk}/revoke/"
    assert revoke in read_page(owen.get(path))
    assert "The agent last used it" in read_text(owen.get(revoke), "revoke")
    for typed in ("", "wrong"):
        assert owen.post(revoke, {"password": typed}).status_code == 422
    assert keys.authenticate_key(text[0]).pk == key.pk
    assert owen.post(revoke, {"password": PASSWORD}).status_code == 302
    with pytest.raises(InvalidAgentKey):
        keys.authenticate_key(text[0])
    assert "Revoked" in read_text(owen.get(path), "keys")
    assert owen.post(f"{path}0/revoke/").status_code == 404


def confirm_settings(as_: SignIn, slug: str, by: str = "alma") -> int:
    """The status of the answer to a confirmation of the agent's settings that wait."""
    (change,) = SettingsChange.objects.filter(agent__slug=slug)
    answer = {"answer": "confirm", "digest": change.digest, "password": PASSWORD}
    path = f"/agents/{slug}/changes/{change.pk}/"
    return int(as_(by).post(path, answer).status_code)


def test_tools_are_offered_and_a_misspelt_one_is_refused(
    gate: Gate, as_: SignIn
) -> None:
    adam = as_("adam")
    sent = {
        "slug": "ada",
        "name": "Ada",
        "owner": gate.owen.public_id,
        "tools": ["look", "deploi"],
        "risk_ceiling": "low",
        "reason": "It reads orders.",
        "password": PASSWORD,
    }
    form = read_page(adam.get(NEW))
    assert '<input type="checkbox" name="tools" value="deploy"' in form
    refused = adam.post(NEW, sent)
    assert refused.status_code == 422
    error = read_text(refused, "error-tools")
    assert "has no tool deploi. Did you mean deploy?" in error
    assert re.search(r'value="look"\s+checked', read_page(refused))
    assert "deploi</textarea>" in read_page(refused)
    done = adam.post(NEW, {**sent, "tools": ["look", "deploy"]})
    assert done.status_code == 200
    assert "calls of deploy (critical risk) are refused" in read_page(done)
    confirm_settings(as_, "ada")
    assert "refused" in read_text(adam.get("/agents/ada/"), "above")


def test_an_agent_keeps_a_tool_that_the_policy_has_no_more(
    gate: Gate, as_: SignIn
) -> None:
    Agent.objects.filter(slug="riley").update(tools=["former", "look"])
    adam, path = as_("adam"), "/agents/riley/settings/"
    assert "former</textarea>" in read_page(adam.get(path))
    sent = {
        "owner": gate.owen.public_id,
        "tools": ["former"],
        "risk_ceiling": "low",
        "password": PASSWORD,
    }
    assert adam.post(path, sent).status_code == 302
    assert Agent.objects.get(slug="riley").tools == ["former"]
