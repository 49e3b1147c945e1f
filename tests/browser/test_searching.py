"""The way to the log's search, from every page and at every width."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PHONE, SitDown
from tests.conftest import Gate

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [768, 900, 1099])
def test_the_log_is_searched_at_widths_without_the_field(
    gate: Gate, sit_down: SitDown, width: int
) -> None:
    desk = sit_down("rita", viewport={"width": width, "height": 700})
    page = desk.open("/queue/")
    page.get_by_role("link", name="Search the audit log").click()
    page.wait_for_url("**/log/#log-q")
    expect(page.locator("#log-q")).to_be_focused()
    assert (desk.violations(), desk.overflow()) == ([], 0)
    page = desk.open("/queue/")
    page.keyboard.press("/")
    page.wait_for_url("**/log/#log-q")
    expect(page.locator("#log-q")).to_be_focused()


def test_the_log_is_searched_from_the_menu_of_a_telephone(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = sit_down("rita", **PHONE)
    page = desk.open("/queue/")
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Search the audit log").click()
    page.wait_for_url("**/log/#log-q")
    expect(page.locator("#log-q")).to_be_focused()
    expect(page.locator("#nav")).to_be_hidden()
    assert (desk.violations(), desk.overflow()) == ([], 0)


def test_where_the_field_is_the_link_is_not(gate: Gate, sit_down: SitDown) -> None:
    desk = sit_down("rita", viewport={"width": 1100, "height": 700})
    page = desk.open("/queue/")
    expect(page.get_by_role("link", name="Search the audit log")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.locator("#find")).to_be_focused()
