"""Two strokes decide: a key arms, Ctrl and Enter commit. The focus is never lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from reviews.choices import RequestStatus
from reviews.holds import take
from reviews.models import ApprovalRequest, Decision
from tests import factories
from tests.browser.conftest import SitDown, arm, look, settle
from tests.conftest import Gate
from tests.factories import decide, propose

pytestmark = pytest.mark.browser


@pytest.fixture
def waiting(gate: Gate) -> ApprovalRequest:
    """A request with a recall window of a minute."""
    document = factories.document_of_tests()
    document["recall"]["high"] = 60
    factories.policy(gate.people, document)
    return propose(gate.agent).request


def test_approve_and_recall_by_keys(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open("/queue/")
    assert page.title().startswith("(1) ")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_be_focused()
    arm(desk, "a")
    assert not Decision.objects.exists()
    page.keyboard.press("Control+Enter")
    expect(page.locator("#outcome")).to_be_focused()
    expect(page.locator("[data-testid=state]")).to_contain_text("can be undone for")
    assert "can be undone" in desk.heard()
    assert page.inner_text("#badge-queue") == ""
    assert page.title().startswith("Request")
    page.keyboard.press("z")
    expect(page.locator("#live")).to_contain_text(
        "Approval undone. Nothing was executed."
    )
    desk.gets_focus("decide")
    assert page.inner_text("#badge-queue") == "1"
    assert desk.violations() == []


def test_escape_gives_the_focus_back_to_the_verb(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.fill("#id_reason", "kept on the way")
    page.keyboard.press("Escape")
    expect(page.locator("#verb-reject")).to_be_focused()
    arm(desk, "x")
    expect(page.locator("#id_reason")).to_have_value("kept on the way")


def test_a_missing_reason_takes_the_focus_and_is_heard(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#reasons")).to_be_focused()
    assert "Choose a reason" in desk.heard("#sr-alert")
    page.keyboard.press("2")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#outcome")).to_contain_text("Rejected")
    assert Decision.objects.get().reason_code == "wrong_amount"


def test_a_note_that_was_dragged_larger_is_swapped_without_inline_style(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    page.evaluate(
        "addEventListener('securitypolicyviolation',"
        " e => console.error(`refused: ${e.violatedDirective}`))"
    )
    arm(desk, "x")
    note = page.locator("#id_reason")
    note.scroll_into_view_if_needed()
    box = note.bounding_box()
    assert box is not None
    corner = box["x"] + box["width"] - 5, box["y"] + box["height"] - 5
    page.mouse.move(*corner)
    page.mouse.down()
    page.mouse.move(corner[0], corner[1] + 60, steps=3)
    page.mouse.up()
    assert "height" in (note.get_attribute("style") or "")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#reason-error")).to_be_visible()
    expect(page.locator(".htmx-settling, .htmx-request")).to_have_count(0)
    assert desk.complaints() == []


def test_plain_enter_in_a_field_commits_nothing(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "m")
    page.press("[name='arg.amount']", "Enter")
    settle(page)
    assert not Decision.objects.exists()


def test_keys_are_silent_while_typing_and_when_switched_off(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    page.fill("#find", "a")
    page.press("#find", "x")
    assert page.locator("[data-testid=panel]").count() == 0
    page.get_by_role("link", name="Single-key shortcuts: on").click()
    page.get_by_label("Single-key shortcuts").uncheck()
    page.keyboard.press("Control+Enter")
    expect(page.locator("main")).to_contain_text("Saved.")
    desk.open(f"/requests/{waiting.pk}/")
    page.keyboard.press("a")
    settle(page)
    assert page.locator("[data-testid=panel]").count() == 0


def test_modify_counts_its_changes_and_takes_them_back(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "m")
    amount = page.locator("[name='arg.amount']")
    commit = page.locator("[data-testid=commit]")
    amount.fill("12.50")
    page.fill("[name='arg.note']", "half")
    expect(commit).to_contain_text("Approve with my 2 changes")
    page.get_by_role("button", name="Revert Note").click()
    expect(commit).to_contain_text("Approve with my 1 change")
    assert desk.violations() == []
    amount.press("Control+Enter")
    expect(page.locator("h1")).to_contain_text("12.50")
    waiting.refresh_from_db()
    assert waiting.version == 2


def test_someone_else_decides_and_my_note_is_kept(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("tom")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.fill("#id_reason", "mine")
    expect(page.get_by_test_id("state")).to_contain_text("Claimed by you")
    take.break_hold(request_id=waiting.pk, person=gate.sue, reason="away")
    decide(waiting, gate.rita, "reject", reason_code="unsafe")
    expect(page.locator("#outcome")).to_contain_text("Rejected")
    expect(page.locator("#kept-text")).to_have_value("mine")
    assert page.locator("[data-testid=commit]").count() == 0
    desk.gets_focus("kept-text")
    assert "Rejected" in desk.heard()
    assert desk.violations() == []


def test_a_new_version_takes_the_verbs_away_and_moves_nothing(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    heading = page.inner_text("h1")
    factories.revise(gate.agent, waiting.proposal, amount="400.00")
    banner = page.locator("[data-testid=banner]")
    expect(banner).to_contain_text("40.00")
    expect(banner).to_contain_text("400.00")
    assert page.inner_text("h1") == heading
    assert page.locator("[data-testid=verb-approve]").count() == 0
    assert "The agent revised" in desk.heard("#sr-alert")
    assert desk.violations() == []
    page.keyboard.press("r")
    expect(page.locator("h1")).to_contain_text("400.00")
    expect(page.locator("[data-testid=verb-approve]")).to_be_visible()


def test_it_expires_while_it_is_read(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.fill("#id_reason", "too late")
    factories.overdue(waiting)
    look(page)
    expect(page.locator("[data-testid=state]")).to_contain_text("Nothing was executed")
    expect(page.locator("#kept-text")).to_have_value("too late")
    desk.gets_focus("kept-text")


def test_the_way_back_in_the_browser_leaves_the_panel(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "a")
    assert page.url.endswith("?arm=approve")
    page.go_back()
    expect(page.locator("[data-testid=verb-approve]")).to_be_visible()


def test_all_of_it_without_javascript(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    page = sit_down("rita", javascript=False).open("/queue/")
    page.click(".effect")
    page.click("[data-testid=verb-reject]")
    page.fill("#id_reason", "as I said")
    page.click("[data-testid=commit]")
    expect(page.locator("#reason-error")).to_be_visible()
    expect(page.locator("#id_reason")).to_have_value("as I said")
    page.check("input[name=reason_code][value=not_needed]")
    page.click("[data-testid=commit]")
    expect(page.locator("#outcome")).to_contain_text("Rejected")
    waiting.refresh_from_db()
    assert waiting.status == RequestStatus.REJECTED


def test_modify_and_recall_without_javascript(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    page = sit_down("rita", javascript=False).open(f"/requests/{waiting.pk}/")
    page.click("[data-testid=verb-modify]")
    page.fill("[name='arg.amount']", "1.00")
    page.click("[data-testid=commit]")
    expect(page.locator("[data-testid=state]")).to_contain_text("Approved")
    page.click("[data-testid=recall]")
    expect(page.locator("#live")).to_contain_text(
        "Approval undone. Nothing was executed."
    )


def test_a_queue_says_what_is_new_and_keeps_its_rows(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    desk.page.clock.install()
    page = desk.open("/queue/")
    propose(gate.agent, "write")
    page.clock.run_for(16_000)
    expect(page.locator("#fresh")).to_contain_text("1 new · show")
    assert page.locator("tbody tr").count() == 1
    assert page.inner_text("#badge-queue") == "2"
    page.click("#fresh a")
    expect(page.locator("tbody tr")).to_have_count(2)


def test_a_run_is_stopped_from_its_request_in_three_steps(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("sue")
    page = desk.open(f"/requests/{waiting.pk}/")
    page.keyboard.press("s")
    page.fill("#id_reason", "runs wild")
    page.press("#id_reason", "Control+Enter")
    expect(page.locator("[data-testid=switch]")).to_contain_text("Run riley/t-1")


def test_signed_out_while_reading_is_said_and_nothing_is_lost(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.fill("#id_reason", "mine")
    page.context.clear_cookies()
    expect(page.locator("#trouble")).to_contain_text("You are signed out.")
    expect(page.locator("#id_reason")).to_have_value("mine")
    assert "Nothing will be sent." in desk.heard("#sr-alert")
    back = page.get_by_role("link", name="Sign in").get_attribute("href") or ""
    assert back.startswith("/sign-in/?next=%2Frequests%2F")


def test_a_lost_connection_is_said(waiting: ApprovalRequest, sit_down: SitDown) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    page.route("**/live/*", lambda route: route.abort())
    page.route("**/live/", lambda route: route.abort())
    since = re.compile(
        r"Not connected since \d\d:\d\d:\d\d UTC\. Nothing will be sent\."
    )
    expect(page.locator("#trouble")).to_contain_text(since)
    verb = page.get_by_test_id("verb-approve")
    expect(verb).to_have_css("cursor", "not-allowed")
    page.unroute_all()
    expect(verb).not_to_have_css("cursor", "not-allowed")
    desk.said.clear()  # the browser itself told of the lost connection


def test_two_supervisors_approve_with_their_passwords(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent, amount="899.00").request
    for name, said in (("sue", "1 of 2 approvals"), ("sam", "Authorized, starting")):
        desk = sit_down(name)
        page = desk.open(f"/requests/{request.pk}/")
        assert "Example, " not in page.inner_text("main")
        arm(desk, "a")
        page.keyboard.press("Control+Enter")
        expect(page.locator("#id_password")).to_be_focused()
        page.keyboard.type(factories.PASSWORD)
        page.keyboard.press("Control+Enter")
        expect(page.locator("#outcome")).to_contain_text(said)


def test_a_refusal_without_a_panel_is_said_in_the_notice(
    waiting: ApprovalRequest, gate: Gate, sit_down: SitDown
) -> None:
    decide(waiting, gate.rita)
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    past = waiting.opened_at
    ApprovalRequest.objects.filter(pk=waiting.pk).update(recall_until=past)
    page.keyboard.press("z")
    expect(page.locator("#notice")).to_contain_text("can no longer be undone")
    expect(page.locator("#notice")).to_be_focused()
    assert "can no longer be undone" in desk.heard("#sr-alert")


def test_a_recorded_note_is_not_offered_again(
    waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    desk = sit_down("rita")
    page = desk.open(f"/requests/{waiting.pk}/")
    arm(desk, "x")
    page.check("[name=reason_code][value=wrong_target]")
    page.fill("#id_reason", "The parcel was delivered.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#outcome")).to_contain_text("Rejected")
    assert Decision.objects.get().reason == "The parcel was delivered."
    kept = page.locator("#kept")
    expect(kept).not_to_have_attribute("open", "")
    expect(page.locator("#kept-text")).to_have_value("")
    assert desk.violations() == []


def test_why_a_verb_is_missing_stands_clear_of_the_others(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent, amount="899.00").request
    page = sit_down("sue").open(f"/requests/{request.pk}/")
    why = page.get_by_test_id("not-offered").bounding_box()
    verbs = page.locator(".verbs").bounding_box()
    assert why
    assert verbs
    assert verbs["y"] - why["y"] - why["height"] >= 8
