"""Keys in a real browser: chosen anew, printed, in the dialog, no two for one thing."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from reviews.people import preferences
from reviews.people.preferences import KeyPreferences
from tests.browser.conftest import SitDown, settle
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.browser


def test_a_chosen_key_works_and_the_usual_one_is_silent(
    gate: Gate, sit_down: SitDown
) -> None:
    preferences.save_preferences(
        person=gate.rita, keys=KeyPreferences(mine={"a": "y", "g q": "g w"})
    )
    request = propose(gate.agent).request
    desk = sit_down("rita")
    page = desk.open(f"/requests/{request.pk}/")
    expect(page.locator("[data-testid=verb-approve] kbd")).to_have_text("Y")
    page.keyboard.press("a")
    settle(page)
    assert page.locator("[data-testid=panel]").count() == 0
    page.keyboard.press("y")
    page.wait_for_selector("[data-testid=panel]")
    page.keyboard.press("Escape")
    expect(page.locator("#verb-approve")).to_be_focused()
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.wait_for_url("**/queue/")


def test_a_page_loaded_after_cancel_keeps_the_focus_on_its_verb(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent).request
    page = sit_down("rita").open(f"/requests/{request.pk}/?from=approve")
    expect(page.locator("#verb-approve")).to_be_focused()


def test_rows_headings_and_sections_by_keys(gate: Gate, sit_down: SitDown) -> None:
    for number in range(2):
        propose(gate.agent, customer=f"C-{number}")
    desk = sit_down("rita")
    page = desk.open("/queue/")
    rows = page.locator("[data-row]")
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("k")
    expect(rows.nth(0)).to_be_focused()
    page.keyboard.press("o")
    page.wait_for_url("**/requests/**")
    expect(page.locator("h1")).to_be_focused()
    page.keyboard.press("]")
    expect(page.locator("main h2").first).to_be_focused()
    page.keyboard.press("[")
    expect(page.locator("h1")).to_be_focused()
    closed = page.locator("main details:not(.more):not([open])")
    before = closed.count()
    page.keyboard.press(".")
    expect(closed).to_have_count(0)
    page.keyboard.press(".")
    assert closed.count() >= before


def test_the_dialog_of_keys_gives_the_focus_back(gate: Gate, sit_down: SitDown) -> None:
    desk = sit_down("rita")
    page = desk.open("/queue/")
    page.locator("#find").focus()
    page.locator("#h1").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Shortcuts")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("Open Approve")
    assert desk.violations() == []
    page.keyboard.press("j")  # not inside a dialog
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    desk.gets_focus("h1")
    page.keyboard.press("?")
    expect(dialog).to_be_visible()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()


def test_two_things_with_one_key_are_told(gate: Gate, sit_down: SitDown) -> None:
    """What makes every browser test a test of collisions."""
    desk = sit_down("rita")
    page = desk.open("/queue/")
    page.evaluate(
        """() => {
            document.querySelector("main").insertAdjacentHTML(
                "beforeend", '<a href="/" data-key="s">Second</a>')
            htmx.trigger(document.body, "htmx:afterSettle", {elt: document.body})
        }"""
    )
    assert [line for line in desk.said if "Two things have the key s" in line]
    desk.said.clear()


def test_the_choice_of_looks_is_there_before_any_script(
    gate: Gate, sit_down: SitDown
) -> None:
    desk = sit_down("rita", javascript=False, color_scheme="light")
    page = desk.open("/me/display/")
    page.check("input[name=theme][value=dark]")
    page.check("input[name=density][value=compact]")
    page.click("button:has-text('Save')")
    expect(page.locator("main")).to_contain_text("Saved.")
    background = "getComputedStyle(document.documentElement).backgroundColor"
    assert page.evaluate(background) == "rgb(15, 19, 24)"


def test_a_collision_is_said_at_its_field(gate: Gate, sit_down: SitDown) -> None:
    desk = sit_down("rita")
    page = desk.open("/me/shortcuts/")
    page.get_by_label("Open Approve").fill("x")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#problem")).to_contain_text("“Open Approve” and “Open Reject”")
    assert desk.violations() == []
    page.get_by_role("button", name="Reset to defaults").click()
    expect(page.locator("main")).to_contain_text("Saved.")


@pytest.mark.parametrize(
    "path", ["/me/", "/me/display/", "/me/shortcuts/", "/me/notifications/"]
)
@pytest.mark.parametrize("width", [1280, 360])
def test_pages_of_preferences_have_no_fault(
    gate: Gate, sit_down: SitDown, path: str, width: int
) -> None:
    scheme = "dark" if width == 360 else "light"
    desk = sit_down(
        "sue", viewport={"width": width, "height": 740}, color_scheme=scheme
    )
    desk.open(path)
    assert (desk.violations(), desk.overflow()) == ([], 0)
