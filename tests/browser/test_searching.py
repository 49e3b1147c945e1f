"""The search of every page: at every width and by keys."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from desk.log import search_entries
from tests.browser.conftest import PHONE, SitDown
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [768, 1099, 1280])
def test_a_page_is_reached_by_a_few_letters(
    gate: Gate, sit_down: SitDown, width: int
) -> None:
    desk = sit_down("rita", viewport={"width": width, "height": 700})
    page = desk.open("/me/")
    page.keyboard.press("Control+k")
    expect(page.locator("#find")).to_be_focused()
    expect(
        page.locator("#hits").get_by_role("link", name="Escalations")
    ).to_be_visible()
    page.keyboard.type("escal")
    expect(page.locator("#hits a")).to_have_count(2)
    assert (desk.violations(), desk.overflow()) == ([], 0)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/escalations/")


def test_escape_closes_the_hits_and_keeps_the_words(
    gate: Gate, sit_down: SitDown
) -> None:
    page = sit_down("rita").open("/me/")
    page.keyboard.press("/")
    page.keyboard.type("act")
    expect(page.locator("#hits a")).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")
    expect(page.locator("#hits")).to_be_hidden()
    expect(page.locator("#find")).to_be_focused()
    expect(page.locator("#find")).to_have_value("act")


def test_a_request_is_found_by_its_words(gate: Gate, sit_down: SitDown) -> None:
    request = propose(gate.agent, customer="C-4711").request
    search_entries.add_missing_entries()
    page = sit_down("rita").open("/me/")
    page.keyboard.press("/")
    page.keyboard.type("4711")
    hit = page.locator(f"#hits a[href='/requests/{request.pk}/']")
    expect(hit).to_contain_text("C-4711")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search/?q=4711")
    expect(page.get_by_test_id("hits")).to_contain_text("C-4711")


def test_a_telephone_has_a_page_for_it(gate: Gate, sit_down: SitDown) -> None:
    desk = sit_down("rita", **PHONE)
    page = desk.open("/queue/")
    page.get_by_role("link", name="Find").click()
    page.wait_for_url("**/search/")
    expect(page.locator("#q")).to_be_focused()
    assert (desk.violations(), desk.overflow()) == ([], 0)


def test_no_key_of_it_acts_while_a_person_writes(gate: Gate, sit_down: SitDown) -> None:
    page = sit_down("rita").open("/log/")
    page.locator("#log-q").fill("refund")
    page.keyboard.press("Control+k")
    page.keyboard.type("/")
    expect(page.locator("#log-q")).to_have_value("refund/")
    expect(page.locator("#hits")).to_be_hidden()


def test_the_own_menu_closes_on_escape_and_on_a_click_elsewhere(
    gate: Gate, sit_down: SitDown
) -> None:
    page = sit_down("rita", viewport={"width": 1280, "height": 700}).open("/me/")
    summary, menu = page.locator(".me summary"), page.locator(".me")
    for leave in (
        lambda: page.keyboard.press("Escape"),
        lambda: page.locator("#h1").click(),
        lambda: page.locator("#find").focus(),
    ):
        summary.click()
        expect(menu).to_have_attribute("open", "")
        page.locator(".me p").click()  # inside
        expect(menu).to_have_attribute("open", "")
        leave()
        expect(menu).not_to_have_attribute("open", "")
    summary.click()
    page.keyboard.press("Escape")
    expect(summary).to_be_focused()
