"""J7: the time runs out while a request is read. It is told, it can be given once
more by one stroke, and at its end nothing is executed and no word is lost.

The state is EXPIRED and never called rejected, since nobody said no: the agent is told
`expired`.
"""

from __future__ import annotations

import re
import time
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from journal.models import LogRecord
from reviews.choices import RequestStatus
from reviews.models import ApprovalRequest, Decision, Execution
from tests import worlds
from tests.journeys.desk import forged, moments, requests
from tests.journeys.desk.conftest import SitDown
from tests.journeys.desk.hands import EXTEND, Leads, Step, Way, in_ways
from tests.journeys.desk.house import House
from tests.journeys.desk.sitting import WITHIN_S, Sitting
from tests.stack import wait_until

pytestmark = [
    pytest.mark.browser,
    pytest.mark.servers,
    pytest.mark.proof,
]

NOTE = "half a thought, and more of it"
START_S = 90
TICK_S = 1.5  # the page looks at its clock once a second
SLACK = 3
LATE_S = 3
MOST_TOLD = 4
DONE = Step("Enter", ".tabs a[href*='tab=done']", Leads.PAGE)
# What the two live regions say from here on; that one was cleared says nothing.
LISTEN = """() => {
    window.told = []
    const watch = new MutationObserver(found => {
        for (const { target } of found)
            if (target.textContent) told.push(target.textContent)
    })
    for (const id of ["sr-status", "sr-alert"])
        watch.observe(document.getElementById(id), { childList: true })
}"""


def held(house: House, rita: Sitting) -> ApprovalRequest:
    """A payment that Rita is at."""
    request = requests.payment(house)
    rita.open(f"/requests/{request.pk}/")
    rita.claims()
    return request


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_the_time_is_told_and_given_once_more(
    house: House, sit_down: SitDown, way: Way
) -> None:
    rita = sit_down("rita", way)
    request = held(house, rita)
    page = rita.page
    page.evaluate(LISTEN)
    draws_near(rita, request, 60)
    status = page.locator("#sr-status")
    expect(status).to_contain_text("One minute left. E, then Ctrl+Enter, extends it.")
    draws_near(rita, request, 20)
    alert = page.locator("#sr-alert")
    expect(alert).to_contain_text("20 seconds left. E, then Ctrl+Enter, extends it.")
    near = request.expires_at
    rita.hand.do(EXTEND)
    rita.hand.commit()
    request.refresh_from_db()
    assert request.expires_at == near + timedelta(minutes=60)
    expiry = page.get_by_test_id("expiry")
    expect(expiry).to_contain_text(f"Expires {request.expires_at:%H:%M:%S}")
    rita.gets_focus("decide")
    assert told(rita) == [
        "One minute left. E, then Ctrl+Enter, extends it.",
        "20 seconds left. E, then Ctrl+Enter, extends it.",
        f"Extended by 60 min: it expires at {request.expires_at:%H:%M:%S} UTC.",
    ]
    counts_down_in_silence(rita)
    assert LogRecord.objects.filter(kind="request.extended").count() == 1
    rita.accessible()


def draws_near(rita: Sitting, request: ApprovalRequest, seconds: float) -> None:
    """A page warns of the moment that it sees pass, so it must know of it before: the
    longer it takes to be told, the earlier it is."""
    took = is_shown_to_expire_in(START_S, rita, request)
    is_shown_to_expire_in(seconds + TICK_S + SLACK * took, rita, request)


def is_shown_to_expire_in(
    seconds: float, rita: Sitting, request: ApprovalRequest
) -> float:
    """Move the deadline; how many seconds the page took to have it."""
    began = time.monotonic()
    moments.expires_in(request, seconds)
    request.refresh_from_db()
    left = rita.page.get_by_test_id("expiry").locator("[data-warn]")
    expect(left).to_have_attribute("data-until", request.expires_at.isoformat())
    return time.monotonic() - began


def told(rita: Sitting) -> list[str]:
    found: list[str] = rita.page.evaluate("told")
    return found


def counts_down_in_silence(rita: Sitting) -> None:
    """A timer is not live by itself, and nothing round it is."""
    timer = rita.page.get_by_test_id("expiry").get_by_role("timer")
    expect(timer).to_be_visible()
    live = "node => node.closest('[aria-live], [role=status], [role=alert]') === null"
    assert timer.evaluate(live)


@in_ways(Way.MOUSE, Way.KEYBOARD)
def test_it_expires_under_an_armed_panel(
    house: House, sit_down: SitDown, way: Way
) -> None:
    rita = sit_down("rita", way)
    request = held(house, rita)
    page = rita.page
    rita.hand.arm("reject")
    rita.hand.choose(4)
    rita.hand.type("#id_reason", NOTE)
    armed = forged.letter(rita)
    page.evaluate(LISTEN)
    draws_near(rita, request, 20)
    expect(page.locator("#sr-alert")).to_contain_text("20 seconds left.")
    moments.expires_in(request, 2)
    expect(rita.state()).to_contain_text("Expired")
    expect(rita.state()).to_contain_text("Nothing was executed.")
    expect(page.get_by_test_id("decide")).to_contain_text("Nobody decided in time.")
    rita.settled()
    assert page.locator("[data-testid^=verb-], [data-testid=commit]").count() == 0
    words = page.locator("#kept textarea")
    expect(words).to_have_value(NOTE)
    expect(words).to_be_focused()
    assert copied(rita) == NOTE
    wait_until(lambda: is_over(request), WITHIN_S)
    assert 2 <= len(told(rita)) <= MOST_TOLD
    rita.accessible()
    is_too_late(rita, request, armed)
    nothing_happened(house, request)
    is_found(rita, request)
    is_in_the_log(sit_down("otto", way), request)


def copied(rita: Sitting) -> str:
    """What a person gets who selects the text."""
    rita.page.keyboard.press("Control+a")
    found: str = rita.page.evaluate("getSelection().toString()")
    return found


def is_over(request: ApprovalRequest) -> bool:
    request.refresh_from_db()
    return request.status == RequestStatus.EXPIRED


def is_too_late(rita: Sitting, request: ApprovalRequest, armed: forged.Letter) -> None:
    """The panel's own post, three seconds after the end."""
    moments.expires_in(request, -LATE_S)
    began = time.monotonic()
    status, said = forged.send(rita, request.pk, armed)
    assert status == 410
    found = re.search(r"(\d+) seconds before your decision arrived", said)
    assert found is not None, said
    assert LATE_S <= int(found[1]) <= LATE_S + time.monotonic() - began
    assert f"This expired at {expiry(request)}" in said
    assert "Nothing was executed." in said
    assert NOTE in said
    refused = LogRecord.objects.get(kind="decision.refused")
    assert b'"expired"' in bytes(refused.leaf)


def expiry(request: ApprovalRequest) -> str:
    request.refresh_from_db()
    return f"{request.expires_at:%H:%M:%S}"


def nothing_happened(house: House, request: ApprovalRequest) -> None:
    assert not Decision.objects.exists()
    assert not Execution.objects.exists()
    assert worlds.effects() == []
    answer = house.told(request)
    assert answer["status"] == "expired"
    assert answer["decision"] is None
    assert answer["execution"] is None


def is_found(rita: Sitting, request: ApprovalRequest) -> None:
    """Nothing disappears: it stands under Done."""
    rita.hand.leave_field()
    rita.hand.go_to_queue()
    rita.hand.reach(DONE)
    row = rita.page.locator(f"tr[data-request='{request.pk}']")
    expect(row).to_contain_text("Expired")
    rita.accessible()


def is_in_the_log(otto: Sitting, request: ApprovalRequest) -> None:
    otto.open(f"/log/?q={request.pk}")
    said = otto.page.locator("#log-table").inner_text()
    assert "Expired without a decision" in said
    assert "tried to reject; it had no effect" in said
    otto.accessible()
