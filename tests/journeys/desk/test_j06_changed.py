"""J6: what is read changes under the reader, by the agent or in the world.

The agent's change is a payment times ten. The state of the world moves under a refund,
which the store binds to the version of its order; it is found again whenever somebody
takes the request up, here by the reader's own second tab.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from journal.models import LogRecord
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Draft, StateReading
from tests.journeys.desk import forged, moments, requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import NEW_VERSION, Way, in_ways
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import WITHIN_S, Sitting
from tests.stack import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

NOTE = "not before the goods are here"
VERBS = "[data-testid^=verb-]"
REFUND = {
    "order_id": "78291",
    "amount": "40.00",
    "currency": "USD",
    "reason": "not_received",
}
READ = ".review [aria-labelledby=h1], .review [data-testid=diff]"


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_the_agent_replaces_what_is_being_read(
    house: House, sit_down: SitDown, way: Way
) -> None:
    request = requests.payment(house, amount="48.00")
    rita = sit_down("rita", way)
    rita.open(f"/requests/{request.pk}/")
    rita.hand.arm("reject")
    rita.hand.type("#id_reason", NOTE)
    rita.hand.leave_field()
    rita.hand.choose(4)
    old, before = forged.letter(rita), reading(rita.page)
    replaced(house, request)
    page = rita.page
    banner = page.get_by_test_id("banner")
    expect(banner).to_contain_text("Amount")
    expect(banner.locator("del")).to_have_text("48.00 USD")
    expect(banner.locator("ins")).to_have_text("480.00 USD")
    assert "The agent revised this request" in rita.heard("#sr-alert")
    rita.settled()
    expect(page.locator("[data-key='r']")).to_contain_text("Review the new version")
    expect(rita.state()).to_contain_text("New version 2 while you were reading")
    assert page.locator(f"{VERBS}, [data-testid=commit]").count() == 0
    assert reading(page) == before
    expect(page.locator("#kept textarea")).to_have_value(NOTE)
    rita.accessible()
    is_stale(rita, request, old)
    rita.hand.leave_field()
    rita.hand.do(NEW_VERSION)
    shows_what_changed(rita)
    rita.hand.arm("reject")
    expect(page.locator("#id_reason")).to_have_value(NOTE)
    rita.accessible()


def replaced(house: House, request: ApprovalRequest) -> None:
    args = {**requests.PAYMENT, "amount": "480.00"}
    body = {"args": args, "rationale": "The invoice says so."}
    house.post(f"/proposals/{request.proposal_id}/revisions", body)


def reading(page: Page) -> list[str]:
    """The very nodes that are being read, as they stand."""
    return [str(one) for one in page.locator(READ).evaluate_all(_SAME)]


_SAME = """nodes => nodes.map(node => {
    window.known ??= new WeakMap()
    if (!known.has(node)) known.set(node, Math.random())
    return known.get(node) + node.outerHTML
})"""


def is_stale(rita: Sitting, request: ApprovalRequest, old: forged.Letter) -> None:
    """The panel of the version that she read, sent all the same."""
    status, said = forged.send(rita, request.pk, old)
    assert status == 409
    assert "while you were reading version 1" in said
    assert "48.00" in said
    assert "480.00" in said
    assert not Decision.objects.exists()
    refused = LogRecord.objects.get(kind="decision.refused")
    assert b'"stale"' in bytes(refused.leaf)
    request.refresh_from_db()
    assert (request.status, request.version) == (RequestStatus.PENDING, 2)


def shows_what_changed(rita: Sitting) -> None:
    """Version 2: what differs comes first and is marked, with the verbs to decide."""
    page = rita.page
    expect(page.get_by_test_id("h1-effect")).to_contain_text("480.00")
    expect(page.locator("#h1")).to_be_focused()
    first = page.get_by_test_id("diff").locator("tbody tr").first
    expect(first).to_contain_text("Amount")
    expect(page.get_by_test_id("since")).to_contain_text("48.00")
    for verb in ("approve", "modify", "reject", "escalate"):
        expect(page.get_by_test_id(f"verb-{verb}")).to_be_visible()
    expect(page.get_by_test_id("draft")).to_contain_text("Draft saved")


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_the_world_moves_under_what_is_being_read(
    house: House, sit_down: SitDown, way: Way
) -> None:
    request = house.asks("process_refund", REFUND)
    rita = sit_down("rita", way)
    rita.open(f"/requests/{request.pk}/")
    rita.hand.arm("approve")
    rita.hand.type("#id_reason", NOTE)
    rita.floor_is_over(request)
    rita.hide(hidden=True)
    moved(house, rita, request)
    with rita.page.expect_response("**/decide/") as answer:
        rita.hand.commit()
    assert answer.value.status == 409
    says_that_it_moved(rita)
    assert not Decision.objects.exists()
    refused = LogRecord.objects.get(kind="decision.refused")
    assert b'"precondition"' in bytes(refused.leaf)
    rita.accessible()
    rita.hide(hidden=False)
    rita.hand.do(NEW_VERSION)
    facts = rita.page.get_by_test_id("current-facts")
    expect(facts).to_contain_text("Returned to sender")
    rita.hand.arm("approve")
    expect(rita.page.locator("#id_reason")).to_have_value(NOTE)
    # The record contradicts the reason of the refund.
    rita.hand.type("#id_written", "The customer sent it back unopened.")
    rita.floor_is_over(request)
    rita.hand.commit()
    expect(rita.state()).to_contain_text("Approved, can be undone for")
    moments.window_over(request)
    assert house.ran(request).status == "succeeded"
    assert Decision.objects.get().reading == StateReading.objects.get(cause="opened")
    assert len(house.store.rows("refund")) == 1
    rita.accessible()


def moved(house: House, rita: Sitting, request: ApprovalRequest) -> None:
    """The store changes the order, and she claims it in another tab."""
    house.store.change(
        "UPDATE purchase SET carrier_status = ?, version = version + 1 WHERE id = ?",
        "Returned to sender",
        REFUND["order_id"],
    )
    other = rita.context.new_page()
    other.goto(f"{rita.base}/requests/{request.pk}/")
    if other.get_by_test_id("release").count():
        other.get_by_test_id("release").click()
    other.get_by_test_id("take").click()
    wait_until(StateReading.objects.exists, WITHIN_S)
    other.close()


def says_that_it_moved(rita: Sitting) -> None:
    page = rita.page
    expect(page.get_by_test_id("problem")).to_contain_text("Nothing was sent.")
    expect(rita.state()).to_contain_text("The record changed at")
    banner = page.get_by_test_id("banner")
    expect(banner.locator("ins")).to_contain_text("Returned to sender")
    assert page.locator(f"{VERBS}, [data-testid=commit]").count() == 0
    expect(page.get_by_test_id("refresh")).to_be_visible()
    wait_until(Draft.objects.exists, WITHIN_S)


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_the_page_itself_says_that_the_world_moved(
    house: House, sit_down: SitDown, way: Way
) -> None:
    """Without a press: the verbs go as soon as the change was found."""
    request = house.asks("process_refund", REFUND)
    rita = sit_down("rita", way)
    rita.open(f"/requests/{request.pk}/")
    before = reading(rita.page)
    moved(house, rita, request)
    expect(rita.state()).to_contain_text("The record changed")
    assert reading(rita.page) == before
    assert rita.page.locator(VERBS).count() == 0
    rita.settled()
    rita.accessible()
    rita.hand.do(NEW_VERSION)
    expect(rita.page.get_by_test_id("verb-approve")).to_be_visible()
