"""From the first call of a function that nobody declared to the policy that decides its
next one, in the browsers of a reviewer and two administrators."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from pytest_django.live_server_helper import LiveServer

import counterseal_client
from agents import keys
from policies.models import PolicyVersion
from reviews.models import ApprovalRequest
from tests import factories
from tests.browser.conftest import SitDown
from tests.conftest import Gate

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_function_is_held_declared_and_decided_by_the_policy(
    gate: Gate, sit_down: SitDown, live_server: LiveServer
) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    key = keys.issue_key(agent=gate.agent, by=gate.owen)
    with counterseal_client.Gate(live_server.url, key) as client:

        @client.tool
        def issue_credit(customer: str, amount: str, currency: str) -> str:
            """Issue a credit to a customer."""
            return f"{amount} {currency} to {customer}"

        first = {"customer": "c-1", "amount": "89.00", "currency": "USD"}
        held = issue_credit.propose(first, thread="t-1", call_id="1")
        assert held.status == "pending"
        assert held.request is not None
        path = urlsplit(held.request.url).path

        page = sit_down("rita").open(path)
        expect(page.get_by_test_id("undeclared")).to_contain_text("Not in the policy")
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "Issue credit: 89.00 USD to customer c-1"
        )
        expect(page.get_by_test_id("declare")).to_have_count(0)

        author = sit_down("adam")
        page = author.open(path)
        page.get_by_test_id("declare").click()
        expect(page.get_by_test_id("declared")).to_contain_text("Issue a credit to a")
        page.get_by_role("button", name="Save as a draft").click()
        expect(page.get_by_text("Another administrator activates it")).to_be_visible()

        draft = PolicyVersion.objects.get(status="draft")
        page = sit_down("alma").open(f"/policies/{draft.number}/")
        expect(page.get_by_label("Allow riley to propose")).to_be_checked()
        page.locator("#id_reason").fill("We know what it does now.")
        page.get_by_label("Your password").fill(factories.PASSWORD)
        page.get_by_role("button", name="Activate version").click()
        expect(page.get_by_text("is active now")).to_be_visible()

        second = {**first, "amount": "12.00"}
        decided = issue_credit.propose(second, thread="t-1", call_id="2")
        assert decided.status == "pending"
        assert "tool.undeclared" not in {rule.id for rule in decided.policy.rules}
        request = ApprovalRequest.objects.get(proposal=decided.id)
        page = sit_down("tom").open(f"/requests/{request.pk}/")
        expect(page.get_by_test_id("tier")).to_be_visible()
        expect(page.get_by_test_id("undeclared")).to_have_count(0)
        factories.decide(request, gate.rita)
        result = issue_credit.perform(second, thread="t-1", call_id="2")
        assert result.value == "12.00 USD to c-1"
