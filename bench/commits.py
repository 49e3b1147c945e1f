"""From pressing the commit button to the new state on the page (ux.md 6.3)."""

from __future__ import annotations

import time

from playwright.sync_api import BrowserContext, Page

from hitl.environment import LOOPBACK

from .held import PATIENCE_S
from .load import percentile
from .report import GoalResult, format_ms

COMMITS = 20
COMMIT_P95_S = 0.250
# From the press to the swap of the answer, by the browser's own clock.
_WATCH_COMMIT = """() => {
    addEventListener("click", () => { window.began = performance.now() }, true)
    new MutationObserver(() => {
        const state = document.querySelector("[data-testid=state]")
        if (window.began && state.textContent.includes("Rejected"))
            window.took ??= performance.now() - window.began
    }).observe(document.body, {childList: true, subtree: true})
}"""


def measure_commits(
    context: BrowserContext, port: int, requests: list[str]
) -> GoalResult:
    """One rejection each of the first requests."""
    page = context.new_page()
    base = f"http://{LOOPBACK}:{port}/requests"
    times = [_time_rejection(page, f"{base}/{one}/") for one in requests[:COMMITS]]
    slowest = percentile(times, 95)
    return GoalResult(
        "W commit -> the new state on the page",
        f"p50 {format_ms(percentile(times, 50))}, p95 {format_ms(slowest)}",
        f"p95 <= {format_ms(COMMIT_P95_S)}",
        slowest <= COMMIT_P95_S,
        f"n = {len(times)}",
    )


def _time_rejection(page: Page, url: str) -> float:
    """Seconds."""
    page.goto(url)
    page.click("[data-testid=verb-reject]")
    page.check("[name=reason_code] >> nth=0")
    page.evaluate(_WATCH_COMMIT)
    page.click("[data-testid=commit]")
    end = time.monotonic() + PATIENCE_S
    while (took := page.evaluate("window.took")) is None:
        if time.monotonic() > end:
            raise TimeoutError("the new state did not come")
        time.sleep(0.02)
    return float(took) / 1000
