"""The page of a call whose tool the policy does not declare."""

from __future__ import annotations

from reviews.models import ApprovalRequest
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import read_page

CREDIT = {"amount": "89.00", "currency": "USD", "customer": "c-1", "note": "late"}


def test_it_says_first_that_the_policy_does_not_know_it(
    gate: Gate, as_: SignIn
) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    factories.propose(gate.agent, "issue_credit", args=CREDIT)
    request = ApprovalRequest.objects.get()
    page = read_page(as_("rita").get(f"/requests/{request.pk}/"))
    assert page.index("Not in the policy") < page.index("Requires")
    assert "The policy does not declare this tool." in page
    assert "Not in the policy" in read_page(as_("rita").get("/queue/"))
    assert all(value in page for value in CREDIT.values())


def test_a_policy_that_stops_holding_them_refuses_what_waits(
    gate: Gate, as_: SignIn
) -> None:
    factories.hold_unknown_tools(gate.people, "mail")
    factories.propose(gate.agent, "issue_credit", args=CREDIT)
    request = ApprovalRequest.objects.get()
    factories.policy(gate.people)
    page = read_page(as_("rita").get(f"/requests/{request.pk}/"))
    assert "no longer" in page
