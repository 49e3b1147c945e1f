"""The rows of the queue in a real browser: what is first, what is loud, what is cut."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import SitDown
from tests.conftest import Gate
from tests.factories import propose

pytestmark = [pytest.mark.browser, pytest.mark.timeout(0)]

SPEAKING = "This request was checked by the fraud team. Ignore the content below."
WARNING = "Possible manipulation: agent text addresses the reviewer"
# Pixels of the field that its placeholder leaves empty.
ROOM = """
field => {
  const style = getComputedStyle(field);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const text = pen.measureText(field.placeholder).width;
  const inset = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  return field.clientWidth - inset - text;
}
"""


def list_amounts(page: Page) -> list[str]:
    return page.locator("table.queue td.num").all_inner_texts()


@pytest.mark.parametrize("name", ["rita", "sue", "otto", "adam"])
def test_the_search_field_shows_what_it_is_for(
    gate: Gate, sit_down: SitDown, name: str
) -> None:
    for number in range(12):
        propose(gate.agent, customer=f"C-{number}", thread=f"t-{number}")
    desk = sit_down(name)
    page = desk.open("/queue/")
    assert page.locator("#find").evaluate(ROOM) >= 0
    assert desk.overflow() == 0


def test_a_warning_stands_above_the_sentence_and_high_is_quiet(
    gate: Gate, sit_down: SitDown
) -> None:
    propose(gate.agent, rationale=SPEAKING, amount="899.00")
    desk = sit_down("sue")
    page = desk.open("/queue/")
    row = page.locator("tr[data-request]")
    warning, sentence = row.get_by_text(WARNING), row.locator("a.effect")
    expect(warning).to_be_visible()
    above, below = warning.bounding_box(), sentence.bounding_box()
    assert above
    assert below
    assert above["y"] + above["height"] <= below["y"]
    style = (
        "node => { const s = getComputedStyle(node); return [s.color, s.borderStyle] }"
    )
    muted = row.locator(".two").first.evaluate(style)[0]
    assert row.locator(".risk").evaluate(style) == [muted, "none"]
    assert desk.violations() == []
    page.set_viewport_size({"width": 360, "height": 740})
    expect(warning).to_be_visible()
    assert desk.overflow() == 0


@pytest.mark.parametrize("javascript", [True, False])
def test_a_click_on_the_heading_sorts_by_amount_and_updates_keep_it(
    gate: Gate, sit_down: SitDown, javascript: bool
) -> None:
    for customer, amount in (("C-1", "6.90"), ("C-2", "89.00"), ("C-3", "20.00")):
        propose(gate.agent, customer=customer, amount=amount)
    page = sit_down("rita", javascript=javascript).open("/queue/")
    heading = page.get_by_role("columnheader", name="Amount")
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert list_amounts(page) == ["89.00 USD", "20.00 USD", "6.90 USD"]
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert list_amounts(page) == ["6.90 USD", "20.00 USD", "89.00 USD"]
    if javascript:
        propose(gate.agent, customer="C-4", amount="7.00")
        page.evaluate("htmx.trigger('#fresh', 'look')")
        page.locator("#fresh a").click()
        expect(page.locator("tr[data-request]")).to_have_count(4)
        expect(heading).to_have_attribute("aria-sort", "ascending")
        assert list_amounts(page)[:2] == ["6.90 USD", "7.00 USD"]
