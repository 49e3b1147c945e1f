"""A real Chromium at the desk. Every page that a test leaves is checked: no console
message, no request off the page, no focus on nothing after a swap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, expect
from pytest_django.live_server_helper import LiveServer

from policies.models import Person
from tests import factories
from tests.conftest import Gate
from tests.security.world import BACKEND

WITHIN_MS = 80_000  # as PATIENCE_S: only a machine that is busy needs it
PAINTED = "new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))"
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
# What the desk calls narrow is a small touch screen; zoom is not.
PHONE: dict[str, Any] = {"viewport": NARROW, "has_touch": True, "is_mobile": True}
LOOKS = [(WIDE, "light"), (NARROW, "dark"), (WIDE, "dark"), (NARROW, "light")]
# axe parses each colour of a page thousands of times, which is a fifth of its work: the
# same text is the same colour.
REMEMBER_COLORS = """
{
  const { prototype } = axe.commons.color.Color;
  const parse = prototype.parseString;
  const known = new Map();
  prototype.parseString = function (text) {
    if (!known.has(text)) {
      const { r, g, b, alpha } = parse.call(this, text);
      known.set(text, { r, g, b, alpha });
    }
    return Object.assign(this, known.get(text));
  };
}
"""
# One key must not press two things. The page's own script does not look for it, because
# whether a thing is shown costs a layout before the first paint.
WATCH_KEYS = """
{
  const check = () => {
    const seen = new Set();
    for (const node of document.querySelectorAll("[data-key]")) {
      if (!node.getClientRects().length || node.disabled) continue;
      const { key } = node.dataset;
      if (seen.has(key)) console.error(`Two things have the key ${key}`);
      seen.add(key);
    }
  };
  addEventListener("DOMContentLoaded", check);
  addEventListener("htmx:afterSettle", check);
}
"""
# Playwright would call a function that a script ends with.
AXE = f"{Axe().axe_script}{REMEMBER_COLORS}null;"
# Runs axe and returns a line for each violation. `preload` would fetch style sheets
# anew.
FIND_VIOLATIONS = """
async rules => {
  const options = { resultTypes: ["violations"], preload: false, ...rules };
  const { violations } = await axe.run(options);
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`);
}
"""
EXPECTED = (
    # Chromium tells of every answer of 400 and more; that one came is what is tested.
    "Failed to load resource: the server responded with a status of 4",
    # A stream of nobody: here it is led to the sign-in page, on the real server it has
    # its 401 (tests/hitl/live/test_event_stream.py).
    'EventSource\'s response has a MIME type ("text/html")',
    # On a slow machine a test goes to a field before the page has focused its own.
    "Autofocus processing was blocked because a document already has a focused element",
)


@dataclass
class Desk:
    """One person's browser."""

    page: Page
    base: str
    said: list[str] = field(default_factory=list)
    scripted: bool = True
    _tools: CDPSession | None = None

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        if self.scripted:
            self.page.evaluate(PAINTED)  # Chromium drops what is pressed before
        return self.page

    def touch(self, on: bool) -> None:
        """Give the page the screen of a telephone, or take it away again."""
        if self._tools is None:
            self._tools = self.page.context.new_cdp_session(self.page)
        self._tools.send("Emulation.setTouchEmulationEnabled", {"enabled": on})

    def focus(self) -> str:
        """The id, or else the tag, of what has the focus."""
        found = self.page.evaluate(
            "document.activeElement.id || document.activeElement.tagName"
        )
        return str(found)

    def gets_focus(self, name: str) -> None:
        """Wait until what has that id, or tag, has the focus: a swap settles later than
        its text is there."""
        self.page.wait_for_function(
            "name => (document.activeElement.id || document.activeElement.tagName)"
            ".toLowerCase() === name.toLowerCase()",
            arg=name,
        )

    def heard(self, region: str = "#sr-status") -> str:
        """What a screen reader was told last, in the five seconds that it stands."""
        return self.page.inner_text(region)

    def overflow(self) -> int:
        """Pixels by which the page scrolls sideways."""
        width = "document.documentElement.scrollWidth - innerWidth"
        return int(self.page.evaluate(width))

    def violations(self) -> list[str]:
        """What axe finds, one line a rule."""
        return find_violations(self.page)

    def complaints(self) -> list[str]:
        return [line for line in self.said if not line.startswith(EXPECTED)]


SitDown = Callable[..., Desk]


@pytest.fixture
def sit_down(
    live_server: LiveServer, gate: Gate, browser: Browser
) -> Iterator[SitDown]:
    """`sit_down("rita", javascript=False)`: a browser in which Rita is signed in;
    `by_form` as people do, through the page that asks for a password."""
    opened: list[tuple[BrowserContext, Desk]] = []

    def start(
        name: str, *, javascript: bool = True, by_form: bool = False, **options: Any
    ) -> Desk:
        context = browser.new_context(
            **{"viewport": WIDE, "timezone_id": "UTC", **options},
            java_script_enabled=javascript,
        )
        context.set_default_timeout(WITHIN_MS)
        desk = Desk(context.new_page(), live_server.url, scripted=javascript)
        listen(desk)
        if by_form:
            sign_in_by_form(desk, name)
        else:
            sign_in(desk, name)
        opened.append((context, desk))
        return desk

    expect.set_options(timeout=WITHIN_MS)
    yield start
    for context, desk in opened:
        assert desk.complaints() == []
        context.close()


def arm(desk: Desk, key: str) -> None:
    """Open a panel, until the focus is in it."""
    desk.page.keyboard.press(key)
    desk.page.wait_for_selector("[data-testid=panel]:focus-within")


def look(page: Page, at: str = "#live") -> None:
    """What the event stream makes an open page do. Not while an answer is on its way,
    which may be older than what the page is told of."""
    page.wait_for_function(
        "at => !document.querySelector('.htmx-request')"
        " && (htmx.trigger(at, 'look'), true)",
        arg=at,
    )


def settle(page: Page) -> None:
    """Until what was pressed is dealt with, and no answer is on its way."""
    page.evaluate(PAINTED)
    page.wait_for_function("() => !document.querySelector('.htmx-request')")


def sign_in(desk: Desk, name: str) -> None:
    """Give the browser a session of this person."""
    person = Person.objects.get(username=name)
    desk.page.context.add_cookies(session_cookies(person, desk.base))


def sign_in_by_form(desk: Desk, name: str) -> None:
    """Type name and password, as people do."""
    page = desk.open("/sign-in/?next=/help/")
    assert page.locator("#id_username").count(), page.content()
    # The page's own doing, which is refused where something else has the focus.
    expect(page.locator("#id_username")).to_be_focused()
    page.fill("#id_username", name)
    page.fill("#id_password", factories.PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_url(f"{desk.base}/help/")


def find_violations(page: Page) -> list[str]:
    """What axe finds on this page, one line a rule."""
    page.evaluate(AXE)
    found: list[str] = page.evaluate(FIND_VIOLATIONS, {})
    return found


def session_cookies(person: Person, base: str) -> list[Any]:
    """A session of this person as cookies of a browser."""
    client = Client()
    client.force_login(person, BACKEND)
    secure = bool(settings.SESSION_COOKIE_SECURE)
    # `__Host-` cookies are kept as if they had come over https.
    url = base.replace("http:", "https:") if secure else base
    return [
        {
            "name": name,
            "value": morsel.value,
            "url": url,
            "secure": secure,
            "httpOnly": True,
        }
        for name, morsel in client.cookies.items()
    ]


def listen(desk: Desk) -> None:
    def off_page(request: Any) -> None:
        if not request.url.startswith(desk.base):
            desk.said.append(f"request to {request.url}")

    desk.page.add_init_script(WATCH_KEYS)
    desk.page.on("console", lambda message: desk.said.append(message.text))
    desk.page.on("pageerror", lambda error: desk.said.append(str(error)))
    desk.page.on("request", off_page)
