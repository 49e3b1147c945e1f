"""A printed case can be read without the screen that it came from."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from reviews.executions import run
from reviews.models import Execution
from tests.browser.conftest import SitDown
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews import states

pytestmark = [pytest.mark.browser, pytest.mark.timeout(0)]

AFTER = "node => getComputedStyle(node, '::after').content"


def printed(page: Page) -> Page:
    """The page as it goes to the printer."""
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    return page


def test_it_says_where_and_when_and_begins_with_who_decided(
    gate: Gate, sit_down: SitDown
) -> None:
    execution = states.queued(gate)
    run.run_execution(execution.pk)
    request = execution.proposal.request
    desk = sit_down("otto")
    page = printed(desk.open(f"/requests/{request.pk}/"))
    head = page.get_by_test_id("print-head")
    expect(head).to_be_visible()
    expect(head).to_contain_text(f"/requests/{request.pk}/")
    expect(head).to_contain_text("://")
    expect(head).to_contain_text(" UTC · printed 20")
    expect(head).to_contain_text("by Otto Example")
    outcome = page.get_by_test_id("progress")
    expect(outcome).to_contain_text("Rita Example")
    first, title = outcome.bounding_box(), page.locator("h1").bounding_box()
    assert first
    assert title
    assert first["y"] < title["y"]
    assert Execution.objects.get().status == "succeeded"
    expect(page.get_by_role("heading", name="Tool response")).to_be_visible()
    expect(page.locator("main button:visible, main textarea:visible")).to_have_count(0)
    expect(page.get_by_text("Add a note")).to_have_count(0)
    link = page.get_by_test_id("history").locator("a[href^='/']").first
    link.wait_for(state="attached")
    assert f"({link.get_attribute('href')})" in link.evaluate(AFTER).replace('"', "")


def test_a_pending_case_is_printed_without_the_form_to_decide_it(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent).request
    page = printed(sit_down("rita").open(f"/requests/{request.pk}/"))
    expect(page.get_by_test_id("print-head")).to_be_visible()
    expect(page.locator("form.decide")).to_be_hidden()
    expect(page.locator(".top")).to_be_hidden()
    page.emulate_media(media="screen")
    expect(page.get_by_test_id("print-head")).to_be_hidden()


def test_no_control_is_printed_beside_what_was_decided(
    gate: Gate, sit_down: SitDown
) -> None:
    request = states.recallable(gate)
    page = printed(sit_down("tom").open(f"/requests/{request.pk}/"))
    expect(page.get_by_test_id("note")).to_be_hidden()
    controls = "main :is(button, textarea, input, select, summary):visible"
    expect(page.locator(controls).filter(has_not_text="Proposed")).to_have_count(0)
