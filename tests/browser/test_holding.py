"""Two people at one request, its time, and typed words."""

from __future__ import annotations

from datetime import timedelta

import pytest
from playwright.sync_api import Page, Route, expect

from journal import clock
from journal.models import LogRecord
from reviews.choices import RequestStatus
from reviews.decisions import drafts
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision, Draft, Hold
from tests.browser.conftest import Desk, SitDown, arm, look, settle
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.stack import wait_until
from tests.worlds import WORLD

pytestmark = pytest.mark.browser

MINE = "Claimed by you until"
CLAIMS = ("hold.taken", "hold.released")


@pytest.fixture
def waiting(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent).request


def open_(desk: Desk, request: ApprovalRequest) -> Page:
    return desk.open(f"/requests/{request.pk}/")


def state(page: Page):
    return page.get_by_test_id("state")


def held_by(request: ApprovalRequest) -> str:
    found = Hold.objects.filter(pk=request.pk, holder__isnull=False).first()
    return str(found.holder) if found else ""


def claim(desk: Desk) -> None:
    """Press Claim, before any other act."""
    desk.page.keyboard.press("c")
    expect(state(desk.page)).to_contain_text(MINE)
    settle(desk.page)


def claims_of(request: ApprovalRequest) -> list[str]:
    found = LogRecord.objects.filter(request=request.pk, kind__startswith="hold.")
    return list(found.order_by("pk").values_list("kind", flat=True))


def test_looking_claims_nothing_and_a_key_does(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = open_(desk, waiting)
    expect(page.locator("h1")).to_be_focused()
    page.mouse.wheel(0, 400)
    settle(page)
    desk.open("/help/")
    open_(desk, waiting)
    settle(page)
    assert claims_of(waiting) == []
    assert not Hold.objects.exists()
    claim(desk)
    expect(page.locator("h1")).to_be_focused()
    page.keyboard.press("c")
    expect(state(page)).to_contain_text("Pending")
    claim(desk)
    expect(page.locator("h1")).to_be_focused()
    desk.open("/help/")
    wait_until(lambda: not held_by(waiting), 9)


@pytest.mark.parametrize("key", ["a", "m", "x", "u", "q", "b"])
def test_opening_a_panel_claims_it_once(
    waiting: ApprovalRequest, sit_down: SitDown, key: str
) -> None:
    desk = sit_down("rita")
    page = open_(desk, waiting)
    arm(desk, key)
    expect(state(page)).to_contain_text(MINE)
    token = Hold.objects.get().token
    if page.locator("#decide [name=hold]").count():
        expect(page.locator("#decide [name=hold]")).to_have_value(token)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("verb-approve")).to_be_visible()
    settle(page)
    assert claims_of(waiting) == ["hold.taken"]


def test_a_page_that_is_loaded_with_its_panel_open_claims_it(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    desk.open(f"/requests/{waiting.pk}/decide/?arm=reject")
    expect(state(desk.page)).to_contain_text(MINE)


@pytest.mark.parametrize("opened", [False, True], ids=["page", "panel"])
def test_only_who_acts_keeps_a_claim(
    waiting: ApprovalRequest, sit_down: SitDown, opened: bool
) -> None:
    """A page that stays open renews nothing, nor does a pointer that crosses it."""
    desk = sit_down("rita")
    desk.page.clock.install()
    page = open_(desk, waiting)
    arm(desk, "x") if opened else claim(desk)
    expect(state(page)).to_contain_text(MINE)
    settle(page)
    beats: list[str] = []
    page.on("request", lambda one: beats.append(one.url))
    soon = clock.now() + timedelta(seconds=200)
    Hold.objects.filter(pk=waiting.pk).update(until=soon)
    look(page)
    grip = page.locator("#grip[data-held]")
    expect(grip).to_have_attribute("data-held", soon.isoformat())
    page.clock.run_for(2_000)
    settle(page)
    beats.clear()
    page.mouse.move(300, 300)
    page.mouse.move(310, 320)
    page.clock.run_for(2_000)
    settle(page)
    assert not any("/hold/" in one for one in beats)
    page.keyboard.press("Shift")
    page.clock.run_for(2_000)
    settle(page)
    assert any("/hold/" in one for one in beats)


def test_leaving_by_way_of_hand_over_gives_it_back(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = open_(desk, waiting)
    claim(desk)
    page.keyboard.press("h")
    page.wait_for_selector("[data-testid=hand-over]")
    wait_until(lambda: not held_by(waiting), 9)
    desk.open("/queue/")
    assert claims_of(waiting) == list(CLAIMS)


def test_a_colleague_accepts_what_is_offered_and_decides(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    rita, tom = sit_down("rita"), sit_down("tom")
    queue = tom.open("/queue/")
    page = open_(rita, waiting)
    offer(rita, "Tom Example")
    expect(state(page)).to_contain_text(MINE)
    expect(page.locator("#live")).to_contain_text("Offered to Tom Example")
    arm(rita, "x")
    settle(page)
    page.keyboard.press("Escape")
    look(queue, "#fresh")
    expect(queue.get_by_test_id("offers")).to_contain_text("offers you a request")
    queue.get_by_test_id("offers").get_by_role("link").click()
    row = queue.locator(f"tr[data-request='{waiting.pk}']")
    expect(row).to_contain_text("Rita Example offers this to you")
    assert tom.violations() == []
    row.get_by_test_id("accept").click()
    expect(state(queue)).to_contain_text(MINE)
    look(page)
    expect(state(page)).to_contain_text("Claimed by Tom Example")
    expect(page.get_by_test_id("lost")).to_contain_text("Tom Example accepted this")
    arm(tom, "x")
    queue.locator("[name=reason_code]").first.check()
    queue.keyboard.press("Control+Enter")
    expect(state(queue)).to_contain_text("Rejected by Tom Example")
    assert Decision.objects.get().reviewer == gate.tom


def test_who_offered_it_reads_on_the_open_page_that_it_was_declined(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    rita, tom = sit_down("rita"), sit_down("tom")
    theirs = open_(tom, waiting)
    page = open_(rita, waiting)
    offer(rita, "Tom Example")
    look(theirs)
    decline = theirs.get_by_test_id("decline").last
    expect(theirs.get_by_test_id("take-over")).to_be_visible()
    assert tom.violations() == []
    decline.click()
    expect(state(theirs)).to_contain_text("Claimed by Rita Example")
    look(page)
    expect(page.locator("#live")).to_contain_text("Tom Example declined your offer.")
    expect(page.locator("#sr-status")).to_contain_text("declined your offer")
    expect(page.get_by_test_id("verb-approve")).to_be_visible()
    assert rita.violations() == []


def offer(desk: Desk, name: str) -> None:
    """Hand over by keys alone."""
    page = desk.page
    page.keyboard.press("h")
    page.wait_for_selector("[data-testid=hand-over]")
    page.select_option("#id_to", label=name)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#live")).to_contain_text(f"Offered to {name}")
    settle(page)


def test_somebody_else_reads_and_sees_what_came_of_it(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    """The second page has no verb, and its focus stays where it was."""
    rita, tom = sit_down("rita"), sit_down("tom")
    open_(rita, waiting)
    claim(rita)
    page = open_(tom, waiting)
    expect(state(page)).to_contain_text("Claimed by Rita Example")
    assert page.locator("[data-testid^=verb-]").count() == 0
    assert tom.violations() == []
    page.locator("#r2").focus()
    decide(waiting, gate.rita, "reject", reason_code="unsafe")
    expect(state(page)).to_contain_text("Rejected by Rita Example")
    expect(page.locator("#sr-status")).to_contain_text("Rejected by Rita")
    tom.gets_focus("r2")
    expect(page.get_by_test_id("decide")).to_contain_text("Nothing was executed.")


def test_what_was_typed_survives_a_hold_that_was_taken_over(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    rita = sit_down("rita")
    page = open_(rita, waiting)
    arm(rita, "x")
    expect(state(page)).to_contain_text(MINE)
    page.fill("#id_reason", "not without an invoice")
    page.keyboard.press("Tab")
    wait_until(lambda: bool(drafts.list_drafts(gate.rita, waiting.pk)), 9)
    page.locator("[name=reason_code]").first.check()
    past = clock.now() - timedelta(minutes=1)
    Hold.objects.filter(pk=waiting.pk).update(until=past)
    take.take_hold(request_id=waiting.pk, person=gate.tom)
    page.keyboard.press("Control+Enter")
    problem = page.get_by_test_id("problem")
    expect(problem).to_contain_text("Tom Example claimed the request")
    assert "not without an invoice" in page.locator("#kept textarea").input_value()
    assert rita.violations() == []


def test_a_supervisor_breaks_a_hold_by_keys(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    take.take_hold(request_id=waiting.pk, person=gate.rita)
    desk = sit_down("sue")
    page = open_(desk, waiting)
    page.get_by_test_id("break").press("Enter")
    page.wait_for_selector("[data-testid=break-hold]")
    assert desk.violations() == []
    page.fill("#id_reason", "gone to lunch")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("verb-approve")).to_be_visible()
    assert LogRecord.objects.get(kind="hold.broken").actor_id == gate.sue.public_id


def test_the_time_is_told_and_given_once_more(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    """Twenty seconds before the end the way out is said; two strokes take it."""
    desk = sit_down("rita")
    soon = clock.now() + timedelta(seconds=26)
    ApprovalRequest.objects.filter(pk=waiting.pk).update(expires_at=soon)
    page = open_(desk, waiting)
    claim(desk)
    alert = page.locator("#sr-alert")
    expect(alert).to_contain_text("E, then Ctrl+Enter, extends it", timeout=20_000)
    arm(desk, "e")
    page.keyboard.press("Control+Enter")
    later = soon + timedelta(minutes=30)
    expiry = page.get_by_test_id("expiry")
    expect(expiry).to_contain_text(f"Expires {later:%H:%M:%S}")
    desk.gets_focus("decide")
    assert LogRecord.objects.filter(kind="request.extended").count() == 1


def test_a_second_press_at_once_extends_no_further(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = open_(desk, waiting)
    claim(desk)
    later = waiting.expires_at + timedelta(minutes=30)
    arm(desk, "e")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#sr-status")).to_contain_text(
        f"Extended by 30 min: it expires at {later:%H:%M:%S} UTC."
    )
    settle(page)
    waiting.refresh_from_db()
    assert waiting.expires_at == later


def test_what_expires_under_a_panel_keeps_the_words(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = open_(desk, waiting)
    arm(desk, "x")
    expect(state(page)).to_contain_text(MINE)
    page.fill("#id_reason", "half a thought")
    past = clock.now() - timedelta(seconds=3)
    ApprovalRequest.objects.filter(pk=waiting.pk).update(expires_at=past)
    expect(state(page)).to_contain_text("Expired")
    expect(page.get_by_test_id("decide")).to_contain_text("Nothing was executed.")
    assert page.locator("[data-testid^=verb-]").count() == 0
    assert page.locator("#kept textarea").input_value() == "half a thought"
    expect(page.locator("#kept textarea")).to_be_focused()
    page.get_by_test_id("add-note").click()
    expect(page.get_by_test_id("notes")).to_contain_text("half a thought")
    assert desk.violations() == []


def test_the_target_that_moved_is_refreshed_before_it_is_decided(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.page
    # The state moves between the page and the moment it is taken up.
    page.route("**/hold/", _move)
    open_(desk, waiting)
    page.keyboard.press("a")
    expect(state(page)).to_contain_text("The record changed at")
    assert page.locator("[data-testid^=verb-]").count() == 0
    expect(page.get_by_test_id("banner")).to_contain_text("As you read it")
    assert desk.violations() == []
    page.keyboard.press("Escape")  # letters meant for the field that is gone do nothing
    page.keyboard.press("r")
    expect(page.get_by_test_id("verb-approve")).to_be_visible()
    expect(page.get_by_test_id("diff")).to_contain_text("read from test world")


def _move(route: Route) -> None:
    WORLD.update(before={"amount": "7.00"}, preconditions={"row_version": 2})
    route.continue_()


def test_next_asks_first_and_then_holds_the_next(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    other = propose(gate.agent, customer="C-2", thread="t-2").request
    desk = sit_down("rita")
    page = open_(desk, waiting)
    arm(desk, "x")
    expect(state(page)).to_contain_text(MINE)
    page.fill("#id_reason", "later")
    page.keyboard.press("Tab")
    wait_until(Draft.objects.exists, 9)
    page.keyboard.press("Escape")
    expect(page.get_by_test_id("draft")).to_be_visible()
    page.keyboard.press("n")
    page.wait_for_selector("[data-testid=leave]")
    assert desk.violations() == []
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/requests/{other.pk}/")
    expect(state(page)).to_contain_text("Pending")
    assert held_by(other) == ""
    wait_until(lambda: not held_by(waiting), 9)


def test_all_of_it_works_without_javascript(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita", javascript=False)
    page = open_(desk, waiting)
    assert not held_by(waiting)
    page.get_by_test_id("take").click()
    expect(state(page)).to_contain_text(MINE)
    page.get_by_test_id("extend").click()
    page.get_by_test_id("commit").click()
    expect(page.get_by_test_id("message")).to_contain_text("Extended by 30 min")
    page.get_by_test_id("verb-reject").click()
    page.fill("#id_reason", "no")
    page.get_by_test_id("commit").click()
    expect(page.locator("#id_reason")).to_have_value("no")
    page.locator("[name=reason_code]").first.check()
    page.get_by_test_id("commit").click()
    expect(state(page)).to_contain_text("Rejected by Rita Example")
    assert not held_by(waiting)
    waiting.refresh_from_db()
    assert waiting.status == RequestStatus.REJECTED
