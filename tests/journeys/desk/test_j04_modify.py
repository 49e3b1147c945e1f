"""J4: a payment is cut to a tenth before it is approved.

The amount is in dollars, as any other currency would need two supervisors. The currency
is locked, so a way to pay is the field that is a choice. `policy` comes from a rule; an
edit above the reviewer's own ceiling, like a raised tier, is accepted and goes upward.
The counter of modifications is the log's own: the page of figures comes later.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, expect

from policies.choices import Tier
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Execution
from tests import worlds
from tests.journeys.desk import moments, requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import Leads, Step, Way, in_ways
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import Sitting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

AMOUNT, PAYEE = "[name='arg.amount']", "[name='arg.payee']"
ABOVE = "over 10,000.00 USD are not made by agents"
LOOK = Step("", "#check button")


def opened(house: House, sit_down: SitDown, way: Way, name: str = "rita") -> Sitting:
    """Somebody has the edit form of a payment before them."""
    request = requests.payment(house)
    desk = sit_down(name, way)
    desk.open(f"/requests/{request.pk}/")
    desk.floor_is_over(request)
    desk.hand.arm("modify")
    return desk


def looked(desk: Sitting) -> Locator:
    """What the server says of the edit; without a script one asks for it."""
    if not desk.scripted:
        desk.hand.do(LOOK)
    return desk.page.get_by_test_id("check")


@in_ways(*Way)
def test_an_amount_is_cut_and_runs_as_cut(
    house: House, sit_down: SitDown, way: Way
) -> None:
    rita = opened(house, sit_down, way)
    shows_what_was_proposed(rita)
    rita.hand.type(AMOUNT, "48.00")
    row = looked(rita).locator("tbody").filter(has_text="Amount")
    expect(row.locator("td")).to_have_text(["120.00", "480.00", "48.00"])
    rita.hand.type(PAYEE, "Harrow Parts Ltd")
    rita.hand.type(AMOUNT, "90000.00")
    expect(looked(rita)).to_contain_text(ABOVE)
    beside = rita.page.locator("[id$='amount-error']")
    rita.hand.leave_field()
    rita.settled()  # the previews of both fields
    rita.hand.commit()
    expect(beside).to_contain_text(ABOVE)
    expect(rita.page.locator(AMOUNT)).to_have_attribute("aria-invalid", "true")
    expect(rita.page.locator(PAYEE)).to_have_value("Harrow Parts Ltd")
    assert not Decision.objects.exists()
    rita.hand.type(PAYEE, requests.PAYMENT["payee"])
    rita.hand.type(AMOUNT, "48.00")
    rita.hand.leave_field()
    rita.settled()  # the preview of the last amount
    rita.hand.choose(1)
    rita.arrived()
    rita.hand.commit(Leads.PAGE)
    expect(rita.page.get_by_test_id("h1-effect")).to_contain_text("48.00")
    expect(rita.state()).to_contain_text("Approved, can be undone for")
    request = ApprovalRequest.objects.get()
    moments.window_over(request)
    house.ran(request)
    rita.look_again()
    expect(rita.state()).to_have_attribute("data-state", "executed")
    rita.accessible()
    ran_as_cut(house, request)
    the_log_shows_it(sit_down("otto"), request)


def shows_what_was_proposed(rita: Sitting) -> None:
    """Every field has its value and its kind."""
    page = rita.page
    expect(page.locator(AMOUNT)).to_have_value("480.00")
    expect(page.locator(AMOUNT)).to_have_attribute("inputmode", "decimal")
    by = page.locator("select[name='arg.by']")
    expect(by).to_have_value("transfer")
    due = page.locator("[name='arg.due_on']")
    expect(due).to_have_attribute("type", "date")
    expect(due).to_have_value("2026-12-15")
    expect(page.locator(PAYEE)).to_have_value("Harrow Parts")
    assert page.locator("[name='arg.currency']").count() == 0


def ran_as_cut(house: House, request: ApprovalRequest) -> None:
    ((tool, _, args),) = worlds.effects()
    assert (tool, args) == ("pay_supplier", {**requests.PAYMENT, "amount": "48.00"})
    decision = Decision.objects.get()
    assert decision.verdict == "modify"
    assert decision.reason_code == "wrong_amount"
    told = house.told(request)
    assert told["decision"]["final_args"]["amount"] == "48.00"
    assert told["status"] == "executed"


def the_log_shows_it(otto: Sitting, request: ApprovalRequest) -> None:
    """One modification more, and the field with both its values."""
    page = otto.open("/log/?flag=modify")
    assert page.locator("#log-table [data-row]").count() == 1
    otto.open(f"/requests/{request.pk}/versions/2/?compare=1..2")
    row = page.get_by_test_id("version-diff").locator("tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("Amount")
    expect(row.locator("del")).to_contain_text("480.00")
    expect(row.locator("ins")).to_contain_text("48.00")


@in_ways(*Way)
def test_whoever_changes_nothing_is_told_to_approve(
    house: House, sit_down: SitDown, way: Way
) -> None:
    rita = opened(house, sit_down, way)
    rita.hand.commit()
    said = "Nothing changed. Use Approve."
    expect(rita.page.get_by_test_id("problem")).to_contain_text(said)
    assert not Decision.objects.exists()
    rita.accessible()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_an_edit_that_raises_the_tier_goes_to_supervisors(
    house: House, sit_down: SitDown, way: Way
) -> None:
    tom = opened(house, sit_down, way, "tom")
    tom.hand.type(AMOUNT, "900.00")
    raised = looked(tom).locator("[data-line=raises]")
    expect(raised).to_contain_text("2 supervisors")
    tom.hand.commit(Leads.PAGE)
    expect(tom.page.get_by_test_id("h1-effect")).to_contain_text("900.00")
    request = ApprovalRequest.objects.get()
    assert request.status == RequestStatus.PENDING
    assert (request.tier, request.supervisors_only) == (Tier.ESCALATE, True)
    assert not Execution.objects.exists()
    assert tom.page.locator("[data-testid^=verb-]").count() == 0
    tom.accessible()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_an_edit_above_the_reviewers_own_ceiling_goes_to_somebody_else(
    house: House, sit_down: SitDown, way: Way
) -> None:
    house.rita.ceiling_minor = 48_500
    house.rita.save()
    rita = opened(house, sit_down, way)
    rita.hand.type(AMOUNT, "490.00")
    more = looked(rita).locator("[data-line=exceeds]")
    expect(more).to_contain_text("1 reviewer")
    rita.hand.commit(Leads.PAGE)
    expect(rita.page.get_by_test_id("h1-effect")).to_contain_text("490.00")
    expect(rita.page.get_by_test_id("decide")).to_contain_text(
        "your change needs another person"
    )
    assert rita.page.locator("[data-testid^=verb-]").count() == 0
    rita.accessible()
    request = ApprovalRequest.objects.get()
    assert (request.status, request.tier) == (RequestStatus.PENDING, Tier.APPROVE)
    assert not Decision.objects.get().counts
    assert not Execution.objects.exists()
