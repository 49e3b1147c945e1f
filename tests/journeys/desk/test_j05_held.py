"""J5: somebody else has it, had it, or is made to give it back."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from journal.models import LogRecord
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Hold
from tests.journeys.desk import moments, requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import Leads, Step, Way, in_ways, marked
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import Sitting
from tests.stack import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

NOTE = "not without an invoice"
BREAK = Step("", marked("break"), Leads.PAGE)


def opens(desk: Sitting, request: ApprovalRequest) -> Sitting:
    desk.open(f"/requests/{request.pk}/")
    return desk


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_who_only_reads_sees_what_came_of_it(
    house: House, sit_down: SitDown, way: Way
) -> None:
    request = requests.payment(house)
    rita, tom = sit_down("rita", way), sit_down("tom", way)
    opens(rita, request).claims()
    opens(tom, request)
    expect(tom.state()).to_contain_text("Claimed by Rita Example")
    assert tom.page.locator("[data-testid^=verb-]").count() == 0
    assert tom.page.locator("[name=verdict], [name=arm]").count() == 0
    status, said = hand_made(tom, request)
    assert status == 409
    assert "Rita Example has claimed this until" in said
    assert not Decision.objects.exists()
    refused = LogRecord.objects.get(kind="decision.refused")
    assert b'"held"' in bytes(refused.leaf)
    tom.hand.rest_on("#r2")
    rita.hand.arm("reject")
    rita.hand.choose(4)
    rita.hand.commit()
    expect(tom.state()).to_contain_text("Rejected by Rita Example")
    expect(tom.page.locator("#sr-status")).to_contain_text("Rejected by Rita")
    tom.gets_focus("r2")
    assert tom.page.locator("[data-testid^=verb-]").count() == 0
    tom.settled()
    tom.accessible()


def hand_made(tom: Sitting, request: ApprovalRequest) -> tuple[int, str]:
    """Tom sends an approval that his page has no button for."""
    page = tom.page
    token = page.locator("[name=csrfmiddlewaretoken]").first.input_value()
    answer = page.request.post(
        f"{tom.base}/requests/{request.pk}/decide/",
        form={
            "csrfmiddlewaretoken": token,
            "verdict": "approve",
            "version": str(request.version),
            "action_hash": request.action_hash,
            "seen": page.locator("#seen").input_value(),
        },
    )
    return answer.status, re.sub(r"\s+", " ", answer.text())


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_a_hold_that_lapsed_was_taken_over(
    house: House, sit_down: SitDown, way: Way
) -> None:
    """Rita's page is behind another tab meanwhile: it neither renews nor hears. Her
    refusal would still win while Tom's approval can be recalled."""
    request = requests.payment(house)
    rita, tom = sit_down("rita", way), sit_down("tom", way)
    opens(rita, request).claims()
    rita.hand.arm("reject")
    rita.hand.type("#id_reason", NOTE)
    rita.hand.leave_field()
    rita.hand.choose(4)
    rita.hide(hidden=True)
    moments.passed(request, minutes=6)
    opens(tom, request).claims()
    assert Hold.objects.get(pk=request.pk).holder == house.tom
    tom.hand.arm("approve")
    tom.floor_is_over(request)
    tom.hand.commit()
    expect(tom.state()).to_contain_text("Approved, can be undone for")
    moments.window_over(request)
    house.ran(request)
    with rita.page.expect_response("**/decide/") as answer:
        rita.hand.commit()
    assert answer.value.status == 409
    problem = rita.page.get_by_test_id("problem")
    said = "Your claim ended and Tom Example approved this at"
    expect(problem).to_contain_text(said)
    expect(problem).to_contain_text("Your rejection has no effect.")
    assert rita.page.locator("#kept textarea").input_value() == NOTE
    assert Decision.objects.get().reviewer == house.tom
    refused = LogRecord.objects.get(kind="decision.refused")
    assert b'"lease_lapsed"' in bytes(refused.leaf)
    rita.accessible()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_a_supervisor_breaks_the_hold(
    house: House, sit_down: SitDown, way: Way
) -> None:
    request = requests.payment(house)
    rita, sue = sit_down("rita", way), sit_down("sue", way)
    opens(rita, request).claims()
    opens(sue, request)
    expect(sue.state()).to_contain_text("Claimed by Rita Example")
    sue.hand.reach(BREAK)
    sue.hand.type("#id_reason", "gone to lunch")
    sue.hand.commit(Leads.PAGE)
    expect(sue.page.get_by_test_id("verb-approve")).to_be_visible()
    expect(rita.page.get_by_test_id("release")).to_have_count(0)
    wait_until(lambda: not held(request), 9)
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    otto = sit_down("otto", way)
    line = otto.open("/log/?flag=broken").locator("#log-table [data-row]")
    expect(line).to_have_count(1)
    expect(otto.page.locator("#log-table")).to_contain_text("Sue Example")
    line.click()
    expect(otto.page.locator("main")).to_contain_text(house.sue.public_id)
    sue.accessible()


def held(request: ApprovalRequest) -> bool:
    return Hold.objects.filter(pk=request.pk, holder__isnull=False).exists()
