"""What is narrow: a small touch screen, where some verbs wait or are missing. A page
that is narrow by zoom, with a mouse, lacks nothing."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from policies.choices import Role
from reviews.models import Decision
from tests import factories
from tests.browser.conftest import PHONE, SitDown, arm
from tests.conftest import Gate
from tests.factories import propose
from tests.reviews.batches.batching import formed

pytestmark = pytest.mark.browser

# A window of 1280 by 800 at 200 and at 400 percent.
TWICE = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2}
FOUR_TIMES = {"viewport": {"width": 320, "height": 200}, "device_scale_factor": 4}
KEYED = ("verb-approve", "verb-modify", "verb-reject", "verb-escalate", "next")
# Nothing sticks over the middle of what is to be pressed.
PRESSED = """id => {
  const one = document.querySelector(`[data-testid=${id}]`)
  one.scrollIntoView({ block: "nearest" })
  const box = one.getBoundingClientRect()
  const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2)
  return one.contains(top)
}"""
# The jump to the decision lies over no part of what has the focus (WCAG 2.4.11).
UNCOVERED = """() => {
  const jump = document.querySelector(".jump"), one = document.activeElement
  if (one === jump || one === document.body) return true
  const [box, bar] = [one, jump].map(node => node.getBoundingClientRect())
  return box.bottom <= bar.top + 1 || box.top >= bar.bottom - 1
}"""


def large(gate: Gate) -> str:
    """A letter of a page or two, of high risk."""
    args = {"to": "ann@shop.example", "text": "It is so.\n" * 120}
    return propose(gate.agent, "write", args=args).request.pk


@pytest.mark.parametrize("zoomed", [TWICE, FOUR_TIMES], ids=["200", "400"])
def test_zoom_with_a_mouse_keeps_every_verb_of_what_is_critical(
    gate: Gate, sit_down: SitDown, zoomed: dict[str, Any]
) -> None:
    for name in ("una", "uri"):
        factories.admitted(name, Role.SUPERVISOR)
    request = propose(gate.agent, "deploy", args={"ref": "main"}).request
    desk = sit_down("sue", **zoomed)
    page = desk.open(f"/requests/{request.pk}/")
    assert "critical-risk" in (page.locator(".review").get_attribute("class") or "")
    for name in KEYED:
        expect(page.get_by_test_id(name)).to_be_visible()
        assert page.evaluate(PRESSED, name), name
    assert (desk.violations(), desk.overflow()) == ([], 0)
    for key in "mxu":
        arm(desk, key)
        expect(page.get_by_test_id("commit")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("[data-testid=panel]")).to_have_count(0)
    page.get_by_test_id("verb-approve").click()
    expect(page.get_by_test_id("agent-text")).to_be_visible()
    page.fill("#id_reason", "Read at twice the size.")
    page.fill("#id_password", factories.PASSWORD)
    page.get_by_test_id("commit").click()
    expect(page.get_by_test_id("state")).to_contain_text("1 of 2 approvals")
    assert Decision.objects.get().flags == []


def test_zoom_with_a_mouse_asks_for_no_scrolling_first(
    gate: Gate, sit_down: SitDown
) -> None:
    page = sit_down("rita", **TWICE).open(f"/requests/{large(gate)}/")
    expect(page.get_by_test_id("verb-approve")).to_be_visible()
    expect(page.locator(".not-yet").first).to_be_hidden()


def test_zoom_with_a_mouse_keeps_every_verb_of_a_batch(
    gate: Gate, sit_down: SitDown
) -> None:
    batch = formed(gate, *["7.00"] * 5)
    desk = sit_down("rita", **TWICE)
    page = desk.open(f"/batches/{batch.pk}/")
    for name in ("approve", "reject", "escalate"):
        expect(page.locator(f"#verb-{name}")).to_be_visible()
        assert page.evaluate(PRESSED, f"verb-{name}"), name
    assert (desk.violations(), desk.overflow()) == ([], 0)


def test_on_a_small_touch_screen_what_is_critical_is_not_approved(
    gate: Gate, sit_down: SitDown
) -> None:
    request = propose(gate.agent, "deploy", args={"ref": "main"}).request
    desk = sit_down("sue", **PHONE)
    page = desk.open(f"/requests/{request.pk}/")
    expect(page.get_by_test_id("verb-reject")).to_be_visible()
    expect(page.get_by_test_id("verb-approve")).to_be_hidden()
    expect(page.locator(".not-here").first).to_be_visible()


@pytest.mark.parametrize("how", ["slowly", "at once"])
def test_what_was_scrolled_past_is_passed_however_fast(
    gate: Gate, sit_down: SitDown, how: str
) -> None:
    desk = sit_down("rita", **PHONE)
    page = desk.open(f"/requests/{large(gate)}/")
    expect(page.get_by_test_id("verb-approve")).to_be_hidden()
    if how == "slowly":
        for part in ("#r2", "#r3"):
            page.locator(part).scroll_into_view_if_needed()
            seen(page, part)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    expect(page.get_by_test_id("verb-approve")).to_be_visible()
    page.get_by_test_id("verb-approve").tap()
    page.locator("#reasons input").first.check()
    page.get_by_test_id("commit").tap()
    expect(page.get_by_test_id("state")).to_contain_text("Authorized")
    assert Decision.objects.get().flags == ["narrow"]


def seen(page: Page, part: str) -> None:
    """Until the browser has told that this part is in view."""
    page.wait_for_function(
        "part => new Promise(done => new IntersectionObserver(([one], watch) =>"
        " { watch.disconnect(); done(one.isIntersecting) })"
        ".observe(document.querySelector(part)))",
        arg=part,
    )


def test_the_decision_is_one_press_away_at_the_top_of_a_narrow_page(
    gate: Gate, sit_down: SitDown
) -> None:
    """Also without a touch screen; and nothing that has the focus is covered."""
    path = f"/requests/{large(gate)}/"
    desk = sit_down("rita", viewport={"width": 360, "height": 740})
    page = desk.open(path)
    jump = page.get_by_test_id("jump")
    expect(jump).to_be_in_viewport(ratio=1)
    expect(page.get_by_test_id("verb-approve")).not_to_be_in_viewport()
    page.locator("#r2").focus()
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(UNCOVERED)
    assert desk.violations() == []
    page.evaluate("scrollTo(0, 0)")
    jump.click()
    expect(page.get_by_test_id("verb-approve")).to_be_in_viewport(ratio=1)
    phone = sit_down("rita", **PHONE).open(path)
    expect(phone.get_by_test_id("verb-reject")).to_be_in_viewport(ratio=1)
    expect(phone.get_by_test_id("jump")).to_be_hidden()
