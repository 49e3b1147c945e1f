"""J2: an approval is taken back while its window is open, and not after it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Execution, Hold
from tests.journeys.desk import moments, requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import RECALL, Leads, Way, in_ways
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import Sitting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]


def approved(house: House, rita: Sitting) -> ApprovalRequest:
    """Rita has just approved a mail; its window is open."""
    request = requests.mail(house)
    rita.open("/queue/")
    rita.hand.open_first()
    rita.hand.arm("approve")
    rita.hand.choose(1)
    rita.floor_is_over(request)
    rita.hand.commit()
    expect(rita.state()).to_contain_text("Approved, can be undone for")
    return request


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_an_approval_is_recalled(house: House, sit_down: SitDown, way: Way) -> None:
    rita = sit_down("rita", way)
    request = approved(house, rita)
    rita.hand.recall()
    expect(rita.page.locator("#live")).to_contain_text(
        "Approval undone. Nothing was executed."
    )
    expect(rita.page.get_by_test_id("release")).to_be_visible()
    assert not Execution.objects.exists()
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    assert Hold.objects.get(pk=request.pk).holder == house.rita
    assert house.store.rows("mail") == []
    assert rita.page.inner_text("#badge-queue") == "1"
    rita.accessible()


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_after_the_window_it_is_too_late(
    house: House, sit_down: SitDown, way: Way
) -> None:
    """Another tab stood before hers, so that her page did not hear that it ran."""
    rita = sit_down("rita", way)
    request = approved(house, rita)
    rita.hide(hidden=True)
    moments.window_over(request)
    house.ran(request)
    with rita.page.expect_response("**/recall/") as answer:
        rita.hand.do(RECALL, Leads.SWAP)
    assert answer.value.status == 409
    notice = rita.page.get_by_test_id("notice")
    expect(notice).to_contain_text("can no longer be undone")
    expect(notice).to_contain_text("You can stop the run")
    expect(notice).to_be_focused()
    assert "can no longer be undone" in rita.heard("#sr-alert")
    stop = rita.page.locator("a.stop")
    expect(stop).to_be_visible()
    assert request.proposal.thread in (stop.get_attribute("href") or "")
    rita.hide(hidden=False)
    expect(rita.state()).to_have_attribute("data-state", "executed")
    assert len(house.store.rows("mail")) == 1
    rita.accessible()
