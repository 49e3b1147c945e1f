"""A look beside the list, and named views of it, in a real browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Route, expect

from reviews.models import Hold, SavedView
from tests.browser.conftest import PAINTED, SitDown, settle
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.browser


def test_a_look_by_key_at_one_row_and_the_next(gate: Gate, sit_down: SitDown) -> None:
    ids = [propose(gate.agent, customer=f"C-{n}").request.pk for n in range(2)]
    desk = sit_down("rita")
    page = desk.open("/queue/")
    peek = page.get_by_test_id("peek")
    for request_id in ids:
        page.keyboard.press("j")
        page.keyboard.press("v")
        expect(peek.get_by_role("link", name="Open to decide")).to_have_attribute(
            "href", f"/requests/{request_id}/"
        )
        expect(page.locator("#sr-status")).to_contain_text(f"Preview of {request_id}")
        expect(
            page.locator(f"[data-row][href='/requests/{request_id}/']")
        ).to_be_focused()
    assert peek.get_by_role("button").count() == 0
    assert page.url.endswith("/queue/")
    assert not Hold.objects.exists()
    assert (desk.violations(), desk.overflow()) == ([], 0)
    page.keyboard.press("o")
    page.wait_for_url(f"**/requests/{ids[1]}/")


def test_an_open_look_follows_the_row_and_marks_it(
    gate: Gate, sit_down: SitDown
) -> None:
    ids = [propose(gate.agent, customer=f"C-{n}").request.pk for n in range(3)]
    desk = sit_down("rita")
    page = desk.open("/queue/")
    link = page.get_by_test_id("peek").get_by_role("link", name="Open to decide")
    marked = page.locator("[data-row][aria-current=true]")
    page.keyboard.press("j")
    assert page.locator("#peek a").count() == marked.count() == 0
    page.keyboard.press("v")
    for key, number in (("", 0), ("j", 1), ("j", 2), ("k", 1)):
        if key:
            page.keyboard.press(key)
        place = f"/requests/{ids[number]}/"
        expect(link).to_have_attribute("href", place)
        expect(marked).to_have_count(1)
        expect(marked).to_have_attribute("href", place)
        expect(marked).to_be_focused()
    assert (desk.violations(), desk.overflow()) == ([], 0)


def test_the_look_of_the_newest_row_stays_however_late_another_comes(
    gate: Gate, sit_down: SitDown
) -> None:
    ids = [propose(gate.agent, customer=f"C-{n}").request.pk for n in range(3)]
    page = sit_down("rita").open("/queue/")
    page.keyboard.press("j")
    expect(page.locator("[data-row]").first).to_be_focused()
    page.keyboard.press("v")
    link = page.get_by_test_id("peek").get_by_role("link", name="Open to decide")
    expect(link).to_have_attribute("href", f"/requests/{ids[0]}/")
    settle(page)
    late: list[Route] = []
    page.route(f"**/{ids[1]}/peek/", lambda route: late.append(route))
    with page.expect_request(f"**/{ids[1]}/peek/"):
        page.keyboard.press("j")
    page.keyboard.press("j")
    page.evaluate(PAINTED)
    late[0].continue_()
    settle(page)
    expect(link).to_have_attribute("href", f"/requests/{ids[2]}/")


def test_a_look_from_nowhere_is_at_the_first_row(gate: Gate, sit_down: SitDown) -> None:
    request = propose(gate.agent).request
    page = sit_down("rita").open("/queue/")
    page.keyboard.press("v")
    expect(page.get_by_test_id("peek")).to_contain_text("Open to decide")
    expect(page.locator("#sr-status")).to_contain_text(request.pk)


@pytest.mark.parametrize("javascript", [True, False])
def test_a_view_is_saved_used_and_deleted(
    gate: Gate, sit_down: SitDown, javascript: bool
) -> None:
    propose(gate.agent)
    desk = sit_down("rita", javascript=javascript)
    page = desk.open("/queue/?risk=high")
    page.get_by_text("Save this view…").click()
    page.get_by_label("Name").fill("Grave ones")
    page.get_by_role("button", name="Save view").click()
    expect(page.get_by_role("link", name="Grave ones")).to_have_attribute(
        "aria-current", "true"
    )
    desk.open("/queue/")
    page.get_by_role("link", name="Grave ones").click()
    page.wait_for_url("**/queue/?risk=high")
    if javascript:
        assert (desk.violations(), desk.overflow()) == ([], 0)
    page.get_by_role("button", name="Delete the view Grave ones").click()
    page.wait_for_url("**/queue/")
    expect(page.get_by_role("link", name="Grave ones")).to_have_count(0)
    assert not SavedView.objects.exists()


def test_a_name_that_is_taken_is_said_where_it_was_typed(
    gate: Gate, sit_down: SitDown
) -> None:
    SavedView.objects.create(person=gate.rita, page="queue", name="Mine", query="")
    desk = sit_down("rita")
    page = desk.open("/queue/?risk=high")
    page.get_by_text("Save this view…").press("Enter")
    page.get_by_label("Name").fill("Mine")
    page.keyboard.press("Enter")
    expect(page.locator("#view-error")).to_contain_text(
        "You already have a view with this name"
    )
    expect(page.get_by_label("Name")).to_be_focused()
    assert desk.violations() == []
