"""One person's browser before the real stack, and what is checked after each step."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Error, Locator, Route, expect

from journal import clock
from reviews.decisions import submission
from reviews.models import ApprovalRequest
from tests.browser.conftest import PAINTED, Desk, find_violations
from tests.journeys.desk.hands import TAKE, Hand, Keyboard, Mouse, Way
from tests.journeys.desk.house import overlay
from tests.stack import wait_until

WITHIN_S = 9
# Nothing is under way: htmx marks what asks and what is being swapped.
QUIET = """() => document.readyState === "complete" &&
    !document.querySelector(".htmx-request,.htmx-swapping,.htmx-settling")"""
# A swap that drops the focus is a fault even where a later one mends it. Its parts are
# settled one by one: asked is when all of them are. What is committed in the middle of
# it cannot keep the focus: its fields are off until it is answered. And who presses Tab
# meanwhile leaves it: beyond the last link nothing has it.
WATCH = """
    const focused = () => document.activeElement !== document.body
    let held = null, acts = 0, before = 0
    addEventListener("keydown", ({ key }) => { acts += key === "Tab" }, true)
    addEventListener("submit", () => { acts += 1 }, true)
    document.addEventListener("htmx:beforeSwap", () => {
        held = focused() ? document.activeElement : null
        before = acts
    })
    document.addEventListener("htmx:afterSettle", ({ target }) => {
        const had = held
        if (had) setTimeout(() => {
            if (focused() || had.matches(":disabled") || acts > before) return
            console.error(`#${target.id} lost the focus`)
        })
    })
"""


@dataclass
class Sitting(Desk):
    """A desk whose every step is made by one kind of hand."""

    way: Way = Way.MOUSE
    hand: Hand = field(init=False)

    def __post_init__(self) -> None:
        made = Keyboard if self.way is Way.KEYBOARD else Mouse
        self.hand = made(self)

    @property
    def context(self) -> BrowserContext:
        return self.page.context

    def settled(self) -> None:
        """What a step swapped is there: the focus is on something, nothing was said in
        the console, and nothing was asked of another place."""
        if self.scripted:
            self._wait_quiet()
            assert self.focus() != "BODY", "the focus is on nothing"
        self.arrived()

    def arrived(self) -> None:
        """The same of a page that was just opened: nothing need have the focus yet."""
        if self.scripted:
            self._wait_quiet()
            self.page.evaluate(PAINTED)  # Chromium drops what is pressed before
        assert self.complaints() == []

    def _wait_quiet(self) -> None:
        """By asking: what Playwright polls with is refused by the pages' own policy."""
        wait_until(self._is_quiet, WITHIN_S, lambda: self.page.url)

    def _is_quiet(self) -> bool:
        try:
            return bool(self.page.evaluate(QUIET))
        except Error:  # it went on to another page meanwhile
            return False

    def state(self) -> Locator:
        """The strip's word for where the request stands."""
        return self.page.get_by_test_id("state")

    def claims(self) -> None:
        """Claim the request that is open, before any other act on it."""
        if self.scripted:
            self.hand.do(TAKE)
            self.holds()

    def holds(self) -> None:
        """Wait until the page says that this person holds the request: opening a panel
        takes it, where a script can."""
        if self.scripted:
            expect(self.page.get_by_test_id("release")).to_be_visible()
            self.settled()

    def floor_is_over(self, request: ApprovalRequest) -> None:
        """Wait until the page was read for as long as its risk asks for, from when it
        says itself that it was made."""
        page = submission.parse_page_token(self.page.locator("#seen").input_value())
        seconds = overlay()["desk"]["time_floor"][request.risk]
        over = page.rendered_at + timedelta(seconds=seconds)
        wait_until(lambda: clock.now() > over, WITHIN_S)

    def look_again(self) -> None:
        """A page without a script says what happened when it is opened anew."""
        if not self.scripted:
            self.page.reload()

    def accessible(self) -> None:
        """axe finds nothing on the page as it is now."""
        found = self.violations() if self.scripted else self._violations_of_copy()
        assert found == []

    def _violations_of_copy(self) -> list[str]:
        """axe is a script: where none runs, it is run on the very same markup."""
        browser = self.context.browser
        assert browser is not None
        copy = browser.new_context(viewport=self.page.viewport_size)
        markup, here = self.page.content(), self.page.url

        def serve(route: Route) -> None:
            if route.request.url == here:
                route.fulfill(body=markup, content_type="text/html")
            elif urlsplit(route.request.url).path.endswith(".js"):
                route.fulfill(body="", content_type="text/javascript")
            else:
                route.continue_()

        try:
            page = copy.new_page()
            page.route("**/*", serve)
            page.goto(here)
            return find_violations(page)
        finally:
            copy.close()

    def hide(self, *, hidden: bool) -> None:
        """What the browser tells a page when another tab comes before it."""
        self.page.evaluate(
            """hidden => {
                const get = () => hidden
                Object.defineProperty(document, "hidden", {configurable: true, get})
                document.dispatchEvent(new Event("visibilitychange"))
            }""",
            hidden,
        )

    def hidden_field(self, name: str) -> Any:
        """What the armed panel would send under this name."""
        return self.page.locator(f"#decide [name='{name}']").first.input_value()
