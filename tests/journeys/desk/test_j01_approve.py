"""J1: an e-mail to three people, one of them outside, is approved in two strokes.

By the effect classes of the store's policy, mail to anyone outside is High and wants a
reason: one stroke more. Without JavaScript nothing takes the hold by itself, since
reading changes nothing.
"""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import expect

from journal.models import LogRecord
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Execution
from tests.journeys.desk import moments, requests
from tests.journeys.desk.conftest import SitDown, sign_in
from tests.journeys.desk.costs import Costs
from tests.journeys.desk.hands import Way
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import Sitting

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

STROKES = 4
REGIONS = ["h1-effect", "diff", "reversal", "verb-approve", "verb-escalate"]


@pytest.mark.parametrize("way", Way)
def test_an_email_is_approved_in_two_strokes(
    house: House, sit_down: SitDown, way: Way, costs: Costs
) -> None:
    request = requests.mail(house)
    rita = sit_down("rita", way, by_form=True)
    sign_in(rita, house, "rita", "/")
    assert rita.page.url == f"{rita.base}/queue/"
    assert rita.page.inner_text("#badge-queue") == "1"
    assert rita.page.title().startswith("(1) ")
    rita.hand.count()
    rita.hand.open_first()
    says_what_it_is(rita)
    rita.hand.arm("approve")
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING
    assert not Decision.objects.exists()
    rita.hand.choose(1)
    rita.floor_is_over(request)
    rita.hand.commit()
    expect(rita.state()).to_contain_text("Approved, can be undone for")
    if rita.scripted:
        assert "can be undone" in rita.heard()
    assert rita.hand.strokes <= STROKES
    assert rita.hand.clicks <= STROKES
    moments.window_over(request)
    ran = house.ran(request)
    rita.look_again()
    expect(rita.state()).to_have_attribute("data-state", "executed")
    assert rita.page.inner_text("#badge-queue") == ""
    assert not rita.page.title().startswith("(")
    rita.accessible()
    ran_what_was_approved(house, request, ran)


def says_what_it_is(rita: Sitting) -> None:
    """The seven questions are answered without scrolling, the agent's words last."""
    page = rita.page
    expect(page.get_by_test_id("h1-effect")).to_contain_text("3 recipients")
    expect(page.get_by_test_id("h1-effect")).to_contain_text("1 outside")
    diff = page.get_by_test_id("diff")
    expect(diff.get_by_role("rowheader", name="Bcc", exact=True)).to_be_visible()
    markup = page.content()
    reversal, words = (
        markup.index(f'data-testid="{name}"') for name in ("reversal", "agent-text")
    )
    assert reversal < words
    if rita.scripted:
        expect(page.locator("#h1")).to_be_focused()
        expect(page.get_by_test_id("take")).to_be_visible()
    for name in REGIONS:
        box = page.get_by_test_id(name).bounding_box()
        assert box is not None
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= 800, name


def ran_what_was_approved(
    house: House, request: ApprovalRequest, ran: Execution
) -> None:
    """One hash from what was decided to what was sent, and the page is kept."""
    decision = Decision.objects.get()
    assert decision.action_hash == ran.grant.action_hash == request.action_hash
    assert decision.flags == []
    assert decision.reason_code == "verified"
    (sent,) = house.store.rows("mail")
    assert json.loads(sent["sent_to"]) == requests.MAIL["to"]
    assert sent["subject"] == requests.MAIL["subject"]
    recorded = LogRecord.objects.get(kind="decision.recorded")
    said = json.loads(bytes(recorded.leaf))["data"]
    assert said["view"] == decision.snapshot.digest
    told = house.told(request)
    assert told["status"] == "executed"
