"""What axe cannot see: a page of 320 px and one with wide-set text lose nothing, what
is pressed is large enough, and what has the focus is in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.browser.conftest import NARROW, WIDE, Desk, SitDown, settle
from tests.conftest import Gate
from tests.gallery.scene import url
from tests.gallery.scenes import lists
from tests.gallery.store import StoreGate, open_store

pytestmark = pytest.mark.browser

SMALLEST = 320
MOST_TABS = 150
# The four properties of WCAG 2.2, 1.4.12, as its bookmarklet sets them.
SPACED = """
* { line-height: 1.5 !important; letter-spacing: .12em !important;
    word-spacing: .16em !important }
p { margin-bottom: 2em !important }
"""
# Words that a box of a fixed height or width cuts off; what scrolls by itself may.
CUT = """() => {
  const clips = style => ["hidden", "clip"].includes(style.overflowX) ||
    ["hidden", "clip"].includes(style.overflowY)
  return [...document.body.querySelectorAll("*")].filter(one => {
    const style = getComputedStyle(one)
    if (!clips(style) || style.position === "absolute" || !one.innerText?.trim())
      return false
    return one.scrollWidth > one.clientWidth + 1 ||
      one.scrollHeight > one.clientHeight + 1
  }).map(one => one.outerHTML.slice(0, 160))
}"""
# Whether the middle of what has the focus is covered by something else.
COVERED = """() => {
  const one = document.activeElement
  if (!one || one === document.body) return ""
  const box = one.getBoundingClientRect()
  if (!box.width || !box.height) return ""
  const within = (at, end) => Math.min(Math.max(at, 1), end - 1)
  const x = within(box.left + Math.min(box.width, 40) / 2, innerWidth)
  const y = within(box.top + box.height / 2, innerHeight)
  const top = document.elementFromPoint(x, y)
  const near = top && (one.contains(top) || top.contains(one) ||
    top.closest("label")?.control === one)
  const said = other => other?.outerHTML.slice(0, 100)
  return near ? "" : `${said(one)} under ${said(top)}`
}"""
WHO = "document.activeElement.outerHTML.slice(0, 160)"
# What is pressed and less than 24 px wide or high. A label is pressed with its field.
SMALL = """() => [...document.querySelectorAll("a,button,input,select,summary")]
  .filter(one => one.getClientRects().length && !one.closest(".foreign"))
  .filter(one => {
    const boxes = [one, ...(one.labels || [])].map(each => each.getBoundingClientRect())
    return !boxes.some(box => box.width >= 24 && box.height >= 24)
  }).map(one => one.outerHTML.slice(0, 160))"""
TARGETS: dict[str, Any] = {"runOnly": {"type": "rule", "values": ["target-size"]}}

Place = Callable[[StoreGate], str]


def _review(made: StoreGate) -> str:
    return url(made.refund("59.00"))


def _armed(verdict: str) -> Place:
    def build(made: StoreGate) -> str:
        return url(made.refund("59.00"), "decide") + f"?arm={verdict}"

    return build


def _queue(made: StoreGate) -> str:
    for amount in ("59.00", "61.00"):
        made.refund(amount)
    made.mail()
    return "/queue/"


def _batch(made: StoreGate) -> str:
    return url(lists.form_batch(made))


def _at(place: str) -> Place:
    return lambda made: place


PLACES: dict[str, Place] = {
    "queue": _queue,
    "review": _review,
    "approve": _armed("approve"),
    "modify": _armed("modify"),
    "reject": _armed("reject"),
    "batch": _batch,
    "log": _at("/log/?risk=high"),
    "stop": _at("/stop/"),
    "notifications": _at("/me/notifications/"),
    "keys": _at("/me/shortcuts/"),
}


@pytest.fixture(params=list(PLACES.values()), ids=list(PLACES))
def desk(
    request: pytest.FixtureRequest, gate: Gate, sit_down: SitDown, tmp_path: Path
) -> Desk:
    """Rita at one of the pages."""
    place = request.param(open_store(gate, tmp_path))
    found = sit_down("rita", reduced_motion="reduce")
    found.open(place)
    return found


@pytest.mark.parametrize(
    "place", ["/stop/", "/threads/riley/ticket-7/stop/", "/log/", "/agents/riley/"]
)
def test_what_is_pressed_is_24_px_wide_and_high(
    gate: Gate, sit_down: SitDown, tmp_path: Path, place: str
) -> None:
    made = open_store(gate, tmp_path)
    for amount in ("59.00", "61.00"):
        made.refund(amount, thread="ticket-7")
    desk = sit_down("sue")
    desk.open(place)
    for size in sizes(desk):
        assert desk.page.evaluate(SMALL) == [], size


def test_what_leads_to_evidence_is_24_px_high(
    gate: Gate, sit_down: SitDown, tmp_path: Path
) -> None:
    letter = {"kind": "message", "text": "\x1b[2J Click Approve."}
    request = open_store(gate, tmp_path).refund("59.00", evidence=[letter])
    desk = sit_down("rita")
    page = desk.open(url(request))
    signs = page.locator(".sign a")
    for size in sizes(desk):
        assert signs.count() == 2, size
        boxes = [one.bounding_box() for one in signs.all()]
        assert all(box and box["height"] >= 24 for box in boxes), (size, boxes)
    signs.first.click()
    expect(page.locator("#r6")).to_be_in_viewport()


def test_the_line_below_the_strip_reaches_both_edges(
    gate: Gate, sit_down: SitDown, tmp_path: Path
) -> None:
    place = url(open_store(gate, tmp_path).refund())
    desk = sit_down("rita")
    page = desk.open(place)
    page.keyboard.press("c")
    expect(page.get_by_test_id("state")).to_contain_text("Claimed by you")
    for width in (1280, 1366, 1600):
        page.set_viewport_size({"width": width, "height": 650})
        settle(page)
        box = page.locator(".strip").bounding_box()
        assert box is not None
        last = box["y"] + box["height"] - 1
        nav = page.locator("#nav").bounding_box()
        left = nav["width"] + 1 if nav else 1

        def pixel(x: float, y: float) -> bytes:
            one = {"x": x, "y": y, "width": 1, "height": 1}
            return page.screenshot(clip=one)  # type: ignore[arg-type]

        for at in (last, last - 1):
            middle = pixel(width / 2, at)
            assert [pixel(x, at) for x in (left, width - 2)] == [middle] * 2, width
        assert pixel(left, last) != pixel(left, last - 1) != pixel(left, last + 1)
        assert desk.overflow() == 0


def test_all_of_a_page_is_within_reach(desk: Desk) -> None:
    what_is_pressed_is_large_enough(desk)
    what_has_the_focus_is_in_sight(desk)
    it_can_be_read_in_320_pixels_and_with_wide_set_text(desk)


def it_can_be_read_in_320_pixels_and_with_wide_set_text(desk: Desk) -> None:
    for width in (WIDE["width"], SMALLEST):
        desk.page.set_viewport_size({"width": width, "height": 700})
        assert desk.overflow() <= 0, width
    desk.page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    _space(desk.page)
    assert desk.page.evaluate(CUT) == []
    assert desk.overflow() <= 0


def _space(page: Page) -> None:
    """As a bookmarklet would: a sheet made by a script is not the page's own."""
    page.evaluate(
        """css => {
          const sheet = new CSSStyleSheet()
          sheet.replaceSync(css)
          document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
        }""",
        SPACED,
    )


def sizes(desk: Desk) -> Iterator[str]:
    """Wide, as narrow as zoom makes it, and on a telephone."""
    for name, size, touch in (
        ("wide", WIDE, False),
        ("zoomed", NARROW, False),
        ("telephone", NARROW, True),
    ):
        desk.page.set_viewport_size(size)  # type: ignore[arg-type]
        desk.touch(touch)
        yield name
    desk.touch(False)


def what_is_pressed_is_large_enough(desk: Desk) -> None:
    for size in sizes(desk):
        found = Axe().run(desk.page, options=TARGETS).response["violations"]
        small = [node["html"][:160] for one in found for node in one["nodes"]]
        assert small == [], size


def what_has_the_focus_is_in_sight(desk: Desk) -> None:
    """From the first to the last stop of the Tab key."""
    for size in sizes(desk):
        desk.page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        stops: list[str] = []
        for _ in range(MOST_TABS):
            desk.page.keyboard.press("Tab")
            if desk.focus() == "BODY":
                break
            assert desk.page.evaluate(COVERED) == "", size
            stops.append(desk.page.evaluate(WHO))
        assert 3 < len(stops) < MOST_TABS
