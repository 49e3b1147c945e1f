"""The rail of a request: nothing in it is cut, nothing beside it moves, and it confirms
what a person did."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from reviews.choices import Scope, StopMode
from reviews.holds import take
from reviews.models import ApprovalRequest
from reviews.stops import stops
from tests import factories
from tests.browser.conftest import NARROW, WIDE, Desk, SitDown, arm, look, settle
from tests.conftest import Gate
from tests.factories import propose

pytestmark = pytest.mark.browser

LONG_WORDS = "They never got the parcel, and the carrier does not know it. " * 80
DOWN = 240
# The parts of the page whose text does not fit into their box.
FIND_CUT = """
() => {
  const parts = "p, dd, dt, li, h1, h2, a, button, td, th";
  return [...document.querySelectorAll(`main :is(${parts})`)]
    .filter(node => node.getClientRects().length && !node.closest(".vh, .foreign"))
    .filter(node => getComputedStyle(node).overflow !== "visible")
    .filter(node => node.scrollWidth > node.clientWidth + 1
      || node.scrollHeight > node.clientHeight + 1)
    .map(node => node.outerHTML.slice(0, 120));
}
"""
FIND_OVERLAPS = """
() => {
  const parts = "h2, p, dd, dt, li, .btn, .quiet, textarea";
  const shown = [...document.querySelectorAll(`.rail :is(${parts})`)]
    .filter(node => node.getClientRects().length);
  const meet = (one, other) => one.bottom > other.top + 1 && other.bottom > one.top + 1
    && one.right > other.left + 1 && other.right > one.left + 1;
  const box = node => node.getBoundingClientRect();
  return shown.flatMap((one, n) => shown.slice(n + 1)
    .filter(other => !one.contains(other) && !other.contains(one))
    .filter(other => meet(box(one), box(other)))
    .map(other => `${one.textContent.trim()} / ${other.textContent.trim()}`));
}
"""


@pytest.fixture
def waiting(gate: Gate) -> ApprovalRequest:
    """A long page, with a recall window of a minute."""
    document = factories.document_of_tests()
    document["recall"]["high"] = 60
    factories.policy(gate.people, document)
    return propose(gate.agent, rationale=LONG_WORDS).request


def open_request(desk: Desk, request: ApprovalRequest) -> Page:
    page = desk.open(f"/requests/{request.pk}/")
    page.keyboard.press("c")
    expect(page.get_by_test_id("state")).to_contain_text("Claimed by you")
    settle(page)
    return page


def add_banners(gate: Gate) -> None:
    """The agent, its run and another agent are paused, and the policy has changed."""
    other = factories.agent(gate.owen, "ada")
    propose(other, thread="t-9")
    for scope, key in (
        (Scope.AGENT, "riley"),
        (Scope.AGENT, "ada"),
        (Scope.THREAD, "riley/t-1"),
    ):
        stops.create_stop(
            scope=scope,
            key=key,
            person=gate.sue,
            reason="Runaway volume.",
            mode=StopMode.PAUSED,
        )
    factories.policy(gate.people, factories.document_of_tests())


def is_in_sight(page: Page, selector: str) -> bool:
    box = page.locator(selector).first.bounding_box()
    size = page.viewport_size
    assert size
    return (
        box is not None and box["y"] >= 0 and box["y"] + box["height"] <= size["height"]
    )


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (("a", "Control+Enter"), "Approved,"),
        (("x", "1", "Control+Enter"), "Rejected"),
        (("u", "1", "Control+Enter"), "With supervisors"),
        (("e", "Control+Enter"), "Extended by 30 min"),
        (("a", "Control+Enter", "z"), "Undone. You can decide it again."),
    ],
)
def test_the_page_stays_where_it_is_and_the_rail_confirms(
    waiting: ApprovalRequest, sit_down: SitDown, keys: tuple[str, ...], said: str
) -> None:
    page = open_request(sit_down("rita"), waiting)
    page.evaluate(f"scrollTo(0, {DOWN})")
    place = page.locator("#r5").bounding_box()
    for key in keys:
        page.keyboard.press(key)
    told = page.locator("#decide :is([data-testid=message], #outcome)").first
    expect(told).to_contain_text(said)
    page.wait_for_function("() => !document.querySelector('.htmx-request')")
    assert page.locator("#r5").bounding_box() == place
    assert is_in_sight(page, "#decide :is([data-testid=message], #outcome)")


@pytest.mark.parametrize(
    ("key", "said", "gone"),
    [("b", "Sent back.", "verb-send_back"), ("q", "Your question is sent.", "")],
)
def test_a_message_is_confirmed_beside_the_buttons(
    waiting: ApprovalRequest, sit_down: SitDown, key: str, said: str, gone: str
) -> None:
    desk = sit_down("rita")
    page = open_request(desk, waiting)
    page.evaluate(f"scrollTo(0, {DOWN})")
    arm(desk, key)
    page.keyboard.type("Which order?")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("message")).to_contain_text(said)
    assert said in desk.heard()
    assert page.evaluate("scrollY") == DOWN
    assert is_in_sight(page, "[data-testid=message]")
    if gone:
        expect(page.get_by_test_id(gone)).to_have_count(0)
    assert desk.violations() == []


@pytest.mark.parametrize("key", ["a", "m", "x", "u", "q", "b", "e"])
def test_a_panel_moves_nothing_that_was_read(
    waiting: ApprovalRequest, sit_down: SitDown, key: str
) -> None:
    desk = sit_down("rita")
    page = open_request(desk, waiting)
    read = ["h1", "table.diff", "[data-testid=reversal]"]
    before = [page.locator(one).bounding_box() for one in read]
    why = page.locator("#r4").bounding_box()
    arm(desk, key)
    assert [page.locator(one).bounding_box() for one in read] == before
    after = page.locator("#r4").bounding_box()
    assert why
    assert after
    assert after["x"] == why["x"]


@pytest.mark.parametrize("size", [WIDE, {"width": 1280, "height": 640}, NARROW])
@pytest.mark.parametrize("key", ["", "m", "x"])
def test_nothing_is_cut_under_several_banners(
    gate: Gate,
    waiting: ApprovalRequest,
    sit_down: SitDown,
    size: dict[str, int],
    key: str,
) -> None:
    add_banners(gate)
    desk = sit_down("rita", viewport=size)
    page = open_request(desk, waiting)
    if key:
        arm(desk, key)
    elif size is WIDE:
        assert is_in_sight(page, "#verb-approve")
        assert is_in_sight(page, "[data-testid=previous]")
    assert page.evaluate(FIND_CUT) == []
    assert page.evaluate(FIND_OVERLAPS) == []
    assert desk.overflow() == 0


def test_a_pause_is_told_once_and_where_it_counts(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown
) -> None:
    add_banners(gate)
    page = open_request(sit_down("rita"), waiting)
    text = page.inner_text("main")
    assert text.count("Agent riley was paused") == 1
    assert text.count("Run riley/t-1 was paused") == 1
    assert "ada" not in text
    quiet = page.get_by_test_id("policy-change")
    expect(quiet).to_contain_text("Nothing changes.")
    assert (quiet.bounding_box() or {"height": 99})["height"] <= 40


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_what_is_read_stays_in_its_place_when_the_state_changes(
    gate: Gate, waiting: ApprovalRequest, sit_down: SitDown, size: dict[str, int]
) -> None:
    desk = sit_down("rita", viewport=size)
    page = desk.open(f"/requests/{waiting.pk}/")
    state = page.get_by_test_id("state")

    def find_places() -> list[int]:
        places: list[int] = page.evaluate(
            "[...document.querySelectorAll('#h1, #r2, #r5')]"
            ".map(one => Math.round(one.getBoundingClientRect().top + scrollY))"
        )
        return places

    before = find_places()
    arm(desk, "x")
    expect(state).to_contain_text("Claimed by you")
    assert find_places() == before
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    expect(state).to_contain_text("Pending")
    take.take_hold(request_id=waiting.pk, person=gate.tom)
    look(page)
    expect(state).to_contain_text("Claimed by Tom")
    assert find_places() == before
