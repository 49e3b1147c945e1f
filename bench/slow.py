"""A page as somebody feels it on a slow machine behind a slow line: a cold cache, the
processor four times slower, 1.6 Mbps and 150 ms to the server."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import BrowserContext, Page, Request

from .held import PATIENCE_S

_CPU_FACTOR = 4
_FETCHED = {"document", "stylesheet", "script", "image", "font", "fetch", "other"}
_SLOW_LINE = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
# What the browser notes of itself, from the first byte on. A task is long from 50 ms;
# only what is beyond blocks.
_WATCH_VISIT = """() => {
    window.felt = {largest: 0, shift: 0, blocked: 0, stroke: 0}
    const on = (type, take, more) =>
        new PerformanceObserver(list => list.getEntries().forEach(take))
            .observe({type, buffered: true, ...more})
    on("largest-contentful-paint", one => { felt.largest = one.startTime })
    on("layout-shift", one => { if (!one.hadRecentInput) felt.shift += one.value })
    on("longtask", one => { felt.blocked += one.duration - 50 })
    on("event", one => { felt.stroke = Math.max(felt.stroke, one.duration) },
       {durationThreshold: 16})
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
    """One visit: wait until it can be used, then use it."""
    page = context.new_page()
    page.add_init_script(f"({_WATCH_VISIT})()")
    _slow_down(context, page)
    asked: list[Request] = []
    page.on("request", lambda one: asked.append(one))
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
    """Strokes end the search for the largest paint, so it must be known before."""
    end = time.monotonic() + PATIENCE_S
    while not page.evaluate("felt.largest"):
        if time.monotonic() > end:
            raise TimeoutError("nothing was painted")
        time.sleep(0.05)


def _slow_down(context: BrowserContext, page: Page) -> None:
    tools = context.new_cdp_session(page)
    tools.send("Network.enable")
    tools.send("Network.setCacheDisabled", {"cacheDisabled": True})
    tools.send("Network.emulateNetworkConditions", _SLOW_LINE)
    tools.send("Emulation.setCPUThrottlingRate", {"rate": _CPU_FACTOR})
