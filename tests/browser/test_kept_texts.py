"""What a person typed while their session ended: said to be not saved, and there again
after they signed in."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.models import Draft, Stop
from tests.browser.conftest import SitDown, arm, settle, sign_in
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.batches.batching import formed

pytestmark = pytest.mark.browser
TEXT = "The customer called.\nThe amount is wrong."


def test_a_draft_that_no_session_takes_is_not_called_saved_and_comes_back(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent).request
    desk = sit_down("rita")
    page = desk.open(f"/requests/{request.pk}/")
    page.get_by_role("button", name="Reject…").click()
    note = page.locator("#decide textarea[name=reason]")
    expect(note).to_be_visible()
    expect(page.get_by_test_id("state")).to_contain_text("Claimed by you")
    settle(page)
    page.context.clear_cookies()
    note.fill(TEXT)
    trouble = page.locator("#trouble")
    note.blur()
    expect(trouble).to_contain_text("Not saved")
    link = page.locator("#trouble a")
    expect(link).to_have_attribute(
        "href",
        "/sign-in/?next=" + (f"%2Frequests%2F{request.pk}%2Fdecide%2F%3Farm%3Dreject"),
    )
    assert not Draft.objects.exists()
    sign_in(desk, "rita")
    for verb, text in (("approve", ""), ("send_back", ""), ("reject", TEXT)):
        desk.open(f"/requests/{request.pk}/decide/?arm={verb}")
        expect(note).to_have_value(text)


def test_each_panel_keeps_its_own_text(gate: Gate, sit_down: SitDown) -> None:
    request = propose(gate.agent).request
    desk = sit_down("rita")
    page = desk.open(f"/requests/{request.pk}/")
    typed = {"x": "not ours", "b": "ask the customer", "q": "Which order?", "a": ""}
    note = page.locator("#id_reason")
    for given in (False, True):
        for key, text in typed.items():
            arm(desk, key)
            expect(note).to_have_value(text if given else "")
            note.fill(text)
            page.keyboard.press("Escape")
            expect(page.get_by_test_id("panel")).to_have_count(0)
    batch = formed(gate, "7.00", "7.20", "7.40")
    desk.open(f"/batches/{batch.pk}/")
    for key, text in (("x", ""), ("u", ""), ("x", "too much")):
        arm(desk, key)
        expect(note).to_have_value(text)
        if key == "x":
            note.fill("too much")
        page.keyboard.press("Escape")
        expect(page.get_by_test_id("panel")).to_have_count(0)


def test_a_form_sent_after_the_session_ended_is_filled_in_again(
    gate: Gate, sit_down: SitDown
) -> None:
    propose(gate.agent)
    desk = sit_down("sue")
    page = desk.open("/threads/riley/t-1/stop/")
    page.fill("#id_reason", TEXT)
    page.context.clear_cookies()
    page.click("[data-testid=commit]")
    page.wait_for_load_state()
    assert not Stop.objects.exists()
    sign_in(desk, "sue")
    desk.open("/threads/riley/t-1/stop/")
    expect(page.locator("#id_reason")).to_have_value(TEXT)
    page.click("[data-testid=commit]")
    expect(page.locator("[data-testid=halt]")).to_be_visible()
    assert Stop.objects.get().reason == TEXT
    desk.open("/threads/riley/t-1/stop/")
    expect(page.locator("#id_reason")).to_have_value("")


def test_signing_out_forgets_what_was_typed(gate: Gate, sit_down: SitDown) -> None:
    propose(gate.agent)
    desk = sit_down("sue")
    page = desk.open("/threads/riley/t-1/stop/")
    page.fill("#id_reason", TEXT)
    page.context.clear_cookies()
    page.click("[data-testid=commit]")
    page.wait_for_load_state()
    sign_in(desk, "sue")
    desk.open("/queue/")
    assert page.evaluate("Object.keys(sessionStorage).join()").count("typed ") == 1
    page.evaluate(
        "document.querySelector(\"form[action$='/sign-out/'] button\").click()"
    )
    page.wait_for_url(lambda url: "/sign-in/" in url)
    assert page.evaluate("Object.keys(sessionStorage).join()").count("typed ") == 0
