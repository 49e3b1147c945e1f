"""An agent's settings in the browser: one administrator tightens, two loosen."""

from __future__ import annotations

import html

import pytest

from agents import setting_changes
from agents.models import Agent, SettingsChange
from agents.registry import AgentChange
from policies.choices import Risk
from policies.documents import EVERY_TOOL
from tests.agents.loosening import ask
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import PASSWORD, propose
from tests.markup import read_page, read_text

pytestmark = pytest.mark.django_db
PATH = "/agents/riley/settings/"


def test_settings_are_an_administrators(gate: Gate, as_: SignIn) -> None:
    path, adam = "/agents/riley/settings/", as_("adam")
    assert as_("owen").get(path).status_code == 403
    assert gate.owen.public_id in read_page(adam.get(path))
    sent = {
        "owner": gate.sue.public_id,
        "tools": "pay",
        "risk_ceiling": "low",
        "password": PASSWORD,
    }
    assert adam.post(path, sent)["Location"] == "/agents/riley/"
    agent = Agent.objects.get(slug="riley")
    assert (agent.owner, agent.tools) == (gate.sue, ["pay"])
    assert agent.risk_ceiling == "low"


def test_a_daily_limit_is_set_shown_and_taken_away(gate: Gate, as_: SignIn) -> None:
    path, adam = "/agents/riley/settings/", as_("adam")
    sent = {
        "owner": gate.owen.public_id,
        "tools": "pay",
        "risk_ceiling": "high",
        "daily_proposals": "0",
        "password": PASSWORD,
    }
    for wrong in ("0", "-1", "many", "1000001"):
        refused = adam.post(path, {**sent, "daily_proposals": wrong})
        assert refused.status_code == 422, wrong
        shown = read_page(refused)
        assert "Enter a number of proposals from 1 to 1000000, or nothing." in shown
        assert f'value="{wrong}"' in shown
    assert adam.post(path, {**sent, "daily_proposals": "40"}).status_code == 302
    assert Agent.objects.get(slug="riley").daily_proposals == 40
    assert 'value="40"' in read_page(adam.get(path))
    assert "0 of 40 allowed" in read_text(adam.get("/agents/riley/"), "daily-limit")
    assert adam.post(path, {**sent, "daily_proposals": "39"}).status_code == 302
    assert Agent.objects.get(slug="riley").daily_proposals == 39
    Agent.objects.update(daily_proposals=None)
    assert "daily-limit" not in read_page(adam.get("/agents/riley/"))


def test_a_budget_of_money_is_set_shown_and_taken_away(gate: Gate, as_: SignIn) -> None:
    path, adam = "/agents/riley/settings/", as_("adam")
    sent = {
        "owner": gate.owen.public_id,
        "tools": "\n".join(gate.agent.tools),
        "risk_ceiling": "critical",
        "password": PASSWORD,
    }
    for wrong, rule in (
        ("500", "500: the currency must be three capital letters"),
        ("500.00 usd", "the currency must be three capital letters"),
        ("1,500.00 USD", "this is not a decimal amount"),
        ("-5.00 USD", "an amount must not be negative"),
        ("1.234 USD", "USD has 2 decimals"),
        ("1.00 USD\n2.00 USD", "USD stands in two lines"),
        ("<b> USD", "&lt;b&gt; USD: this is not a decimal amount"),
    ):
        refused = adam.post(path, {**sent, "daily_money": wrong})
        assert refused.status_code == 422, wrong
        assert rule in read_page(refused)
        assert html.escape(wrong) in refused.content.decode()
    typed = " 500 USD \n\n30000 JPY"
    assert adam.post(path, {**sent, "daily_money": typed}).status_code == 302
    agent = Agent.objects.get(slug="riley")
    assert agent.daily_money == {"JPY": "30000", "USD": "500.00"}
    assert "30000 JPY\n500.00 USD" in adam.get(path).content.decode()
    propose(agent, amount="125.00")
    shown = read_page(adam.get("/agents/riley/"))
    assert "125.00 of 500.00 USD" in " ".join(shown.split())
    assert 'value="25"' in shown
    assert "0 of 30,000 JPY" in " ".join(shown.split())


def looser(gate: Gate, **fields: str) -> dict[str, str]:
    return {
        "owner": gate.owen.public_id,
        "every_tool": "on",
        "risk_ceiling": "critical",
        "daily_money": "5 USD",
        "password": PASSWORD,
        **fields,
    }


def test_looser_settings_wait_for_a_second_administrator(
    gate: Gate, as_: SignIn
) -> None:
    adam, alma = as_("adam"), as_("alma")
    refused = adam.post(PATH, looser(gate))
    assert "Say why" in read_text(refused, "error-reason")
    assert "5 USD" in refused.content.decode()
    sent = looser(gate, reason="It <b>grows</b>.")
    assert adam.post(PATH, sent)["Location"] == "/agents/riley/"
    agent = Agent.objects.get(slug="riley")
    assert not agent.has_every_tool
    assert agent.daily_money == {"USD": "5.00"}  # less takes effect at once
    change = SettingsChange.objects.get()
    own = f"/agents/riley/changes/{change.pk}/"
    assert "every tool of the policy" in read_text(
        alma.get("/agents/riley/"), "changes"
    )
    assert "every tool of the policy" in read_text(alma.get("/overview/"), "changes")
    assert "Withdraw" in read_text(adam.get(own), "answer")
    alone = adam.post(
        own, {"answer": "confirm", "digest": change.digest, "password": PASSWORD}
    )
    assert "Another administrator must answer" in read_text(alone, "problem")
    shown = read_page(alma.get(own))
    assert change.digest in shown
    assert "It &lt;b&gt;grows&lt;/b&gt;." in shown
    answer = {"answer": "confirm", "digest": change.digest}
    wrong = alma.post(own, {**answer, "password": "wrong"})
    assert wrong.status_code == 422
    assert not Agent.objects.get(slug="riley").has_every_tool
    done = alma.post(own, {**answer, "password": PASSWORD})
    assert done["Location"] == "/agents/riley/"
    assert Agent.objects.get(slug="riley").tools == [EVERY_TOOL]
    assert "Confirmed" in read_text(adam.get("/agents/riley/"), "changes")
    again = alma.post(own, {**answer, "password": PASSWORD})
    assert "already answered" in read_text(again, "problem")


def test_it_is_refused_with_a_reason_or_withdrawn(gate: Gate, as_: SignIn) -> None:
    Agent.objects.update(risk_ceiling=Risk.LOW)
    change = ask(gate, AgentChange(risk_ceiling=Risk.HIGH))
    own, alma = f"/agents/riley/changes/{change.pk}/", as_("alma")
    silent = alma.post(own, {"answer": "refuse", "password": PASSWORD})
    assert "Say why" in read_text(silent, "error-reason")
    sent = {"answer": "refuse", "reason": "Not yet.", "password": PASSWORD}
    assert alma.post(own, sent).status_code == 302
    assert "Not yet." in read_page(alma.get(own))
    again = ask(gate, AgentChange(risk_ceiling=Risk.HIGH))
    own = f"/agents/riley/changes/{again.pk}/"
    sent = {"answer": "withdraw", "password": PASSWORD}
    assert as_("adam").post(own, sent).status_code == 302
    again.refresh_from_db()
    assert again.status == "withdrawn"
    assert alma.post(own, {"answer": "sideways"}).status_code == 422


def test_a_void_change_says_what_to_do(gate: Gate, as_: SignIn) -> None:
    Agent.objects.update(risk_ceiling=Risk.LOW)
    change = ask(gate, AgentChange(risk_ceiling=Risk.HIGH))
    Agent.objects.update(daily_proposals=3)
    own, alma = f"/agents/riley/changes/{change.pk}/", as_("alma")
    sent = {"answer": "confirm", "digest": change.digest, "password": PASSWORD}
    told = alma.post(own, sent, follow=True)
    assert "Ask for it again on the settings as they are now." in read_page(told)
    assert Agent.objects.get().risk_ceiling == Risk.LOW
    assert "Void" in read_text(alma.get("/agents/riley/"), "changes")


def test_a_change_is_for_administrators(gate: Gate, as_: SignIn) -> None:
    Agent.objects.update(risk_ceiling=Risk.LOW)
    change = ask(gate, AgentChange(risk_ceiling=Risk.HIGH))
    own = f"/agents/riley/changes/{change.pk}/"
    for name, status in (("rita", 404), ("sue", 403), ("owen", 403)):
        assert as_(name).get(own).status_code == status
    assert "maximum risk high" in read_text(
        as_("owen").get("/agents/riley/"), "changes"
    )
    assert as_("adam").get("/agents/riley/changes/0/").status_code == 404
    setting_changes.withdraw_change(change_id=change.pk, by=gate.adam)
