"""People at the desk: signed-in clients, and a Chromium that is fast or slow.

A slow visit is what somebody feels on a slow machine behind a slow line: a cold cache,
the processor four times slower, 1.6 Mbps and 150 ms to the server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Request, sync_playwright

from hitl.environment import LOOPBACK
from policies.models import Person
from tests import guards
from world.cast import PASSWORD

from .load import PATIENCE_S

_ARGS = ["--no-sandbox", "--disable-dev-shm-usage"]


@contextmanager
def open_chromium() -> Iterator[Browser]:
    """A running Chromium. Its event loop runs in this thread, so that this thread must
    not query the database meanwhile."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=guards.chromium(), args=_ARGS
        )
        try:
            yield browser
        finally:
            browser.close()


def sign_in_client(name: str) -> Client:
    """Django's own client, signed in without a page."""
    client = Client(HTTP_HOST=urlsplit(settings.COUNTERSEAL.base_url).netloc)
    person = Person.objects.get(username=name)
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    return client


def create_session(name: str) -> str:
    """The key of a signed-in session, for a client of another kind."""
    cookie = sign_in_client(name).cookies[settings.SESSION_COOKIE_NAME]
    return str(cookie.value)


def wait_for_value(page: Page, expression: str, otherwise: str) -> Any:
    """The first value that is not null.

    Raises TimeoutError with what `otherwise` says.
    """
    end = time.monotonic() + PATIENCE_S
    while (value := page.evaluate(expression)) is None:
        if time.monotonic() > end:
            raise TimeoutError(otherwise)
        time.sleep(0.01)
    return value


def sign_in(page: Page, port: int, name: str = "rita") -> str:
    """Sign in by the page that people use; return the address of the web process."""
    base = f"http://{LOOPBACK}:{port}"
    page.goto(f"{base}/sign-in/?next=/help/")
    page.fill("#id_username", name)
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_url(f"{base}/help/")
    return base


_CPU_FACTOR = 4
_FETCHED = {"document", "stylesheet", "script", "image", "font", "fetch", "other"}
_SLOW_LINE = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
# What the browser notes of itself, from the first byte on. A task is long from 50 ms;
# only what is beyond blocks. A page that appears under the mouse is no interaction.
_WATCH_VISIT = """() => {
    window.felt = {largest: 0, shift: 0, blocked: 0, stroke: 0}
    const on = (type, take, more) =>
        new PerformanceObserver(list => list.getEntries().forEach(take))
            .observe({type, buffered: true, ...more})
    on("largest-contentful-paint", one => { felt.largest = one.startTime })
    on("layout-shift", one => { if (!one.hadRecentInput) felt.shift += one.value })
    on("longtask", one => { felt.blocked += one.duration - 50 })
    on("event", one => {
        if (one.interactionId) felt.stroke = Math.max(felt.stroke, one.duration)
    }, {durationThreshold: 16})
}"""
_READ_VISIT = """() => ({...window.felt,
    painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    usable: performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd})"""
# What a person presses on each page, and what must then be there.
_KEYS = {
    "queue": (["j", "j", "k"], "[data-row]:focus"),
    "review": (["a"], "#panel"),
    "batch": (["j", "j", "k"], ":focus"),
    "log": (["Tab", "Tab"], ":focus"),
}


@dataclass(frozen=True)
class Visit:
    """Seconds, but for the shift of the layout and the number of requests."""

    painted: float
    largest: float
    usable: float
    stroke: float
    shift: float
    blocked: float
    requests: int


def visit_slowly(context: BrowserContext, url: str, name: str) -> Visit:
    """Visit a page: wait until it can be used, then press its keys."""
    page = context.new_page()
    page.add_init_script(f"({_WATCH_VISIT})()")
    _slow_down(context, page)
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.goto(url, wait_until="load")
    # Without the stream, and the POST by which a reviewer takes the request up.
    count = sum(o.method == "GET" and o.resource_type in _FETCHED for o in asked)
    _wait_for_paint(page)
    shift = page.evaluate("felt.shift")  # by itself, before anything is asked of it
    strokes, then = _KEYS[name]
    for key in strokes:
        page.keyboard.press(key)
    page.wait_for_selector(then, timeout=30_000)
    felt: dict[str, Any] = page.evaluate(_READ_VISIT)
    page.close()
    del felt["shift"]
    times = {name: spent / 1000 for name, spent in felt.items()}
    return Visit(**times, shift=shift, requests=count)


def _wait_for_paint(page: Page) -> None:
    """Wait for the largest paint: a key press ends the browser's search for it."""
    wait_for_value(page, "felt.largest || null", "nothing was painted")


def _slow_down(context: BrowserContext, page: Page) -> None:
    tools = context.new_cdp_session(page)
    tools.send("Network.enable")
    tools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    tools.send("Network.emulateNetworkConditions", _SLOW_LINE)
    tools.send("Emulation.setCPUThrottlingRate", {"rate": _CPU_FACTOR})
