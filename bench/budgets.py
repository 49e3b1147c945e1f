"""W: the budgets of a page.

They bound what a page weighs, how soon the server answers, how soon somebody far away
can use it on a slow machine, and how soon a committed decision shows on the page.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields
from statistics import median
from typing import Any

import httpx2
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from playwright.sync_api import Browser, BrowserContext, Page, StorageState

from hitl.environment import LOOPBACK

from . import browser, servers
from .browser import Visit
from .load import percentile
from .report import GoalResult, Options, format_ms, print_text
from .seed import Seed, propose_pages

ANSWERS = 40  # times that the server is asked for each page
EVERYWHERE = {"CLS": 0.02, "TBT ms": 50, "requests": 5}
_NAMES = [
    "gzip KB",
    "raw KB",
    "SQL",
    "server p95 ms",
    "FCP ms",
    "LCP ms",
    "INP ms",
    "usable ms",
]
_BARS = {
    "queue": (18, 120, 12, 200, 1000, 1200, 100, 1500),
    "review": (16, 80, 15, 150, 1000, 1200, 100, 1500),
    "batch": (24, 160, 12, 250, 1500, 1500, 150, 1800),
    "log": (22, 150, 10, 300, 1500, 1500, 150),
}
_PEOPLE = {"queue": "rita", "review": "rita", "batch": "rita", "log": "sue"}
_FIGURES = {
    "painted": "FCP ms",
    "largest": "LCP ms",
    "usable": "usable ms",
    "stroke": "INP ms",
    "shift": "CLS",
    "blocked": "TBT ms",
    "requests": "requests",
}


@dataclass
class MeasuredPage:
    """One page: its address, its bytes, and every figure of it by its name."""

    name: str
    path: str
    key: str
    figures: dict[str, float] = field(default_factory=dict)
    felt: list[Visit] = field(default_factory=list)

    @property
    def bars(self) -> Mapping[str, float]:
        return dict(zip(_NAMES, _BARS[self.name], strict=False)) | EVERYWHERE

    @property
    def line(self) -> GoalResult:
        """Each figure beside its bar."""
        figures = [f"{n} {self.figures[n]:.4g}/{bar:g}" for n, bar in self.bars.items()]
        over = [n for n, bar in self.bars.items() if self.figures[n] > bar]
        return GoalResult(
            f"W {self.name}",
            ", ".join(figures),
            "after each slash",
            not over,
            f"n = {ANSWERS} answers, {len(self.felt)} slow visits",
        )

    def take_medians(self) -> None:
        """Take the medians over the slow visits."""
        for place in fields(Visit):
            middle = median([getattr(visit, place.name) for visit in self.felt])
            label = _FIGURES[place.name]
            self.figures[label] = middle * 1000 if label.endswith("ms") else middle


def measure_page_budgets(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """One result a page, and one of what a commit takes."""
    call_command("collectstatic", interactive=False, verbosity=0)
    opened = propose_pages(seed, COMMITS)
    visited = [_build_page(name, path) for name, path in opened.paths.items()]
    with servers.start_webs(1) as (port,):
        for page in visited:
            _time_answers(page, port)
        with browser.open_chromium() as chromium:
            signed_in = {
                name: _create_profile(chromium, port, name)
                for name in set(_PEOPLE.values())
            }
            for number in range(options.rounds):
                for page in visited:
                    with _open_profile(
                        chromium, signed_in[_PEOPLE[page.name]]
                    ) as context:
                        url = f"http://{LOOPBACK}:{port}{page.path}"
                        page.felt.append(browser.visit_slowly(context, url, page.name))
                felt = [f"{v.name} {astuple(v.felt[-1])}" for v in visited]
                print_text(f"W round {number + 1}: {'; '.join(felt)}")
            with _open_profile(chromium, signed_in["rita"]) as context:
                decided = measure_commits(context, port, opened.requests)
    for page in visited:
        page.take_medians()
    return (*(page.line for page in visited), decided)


def _build_page(name: str, path: str) -> MeasuredPage:
    page = MeasuredPage(name, path, browser.create_session(_PEOPLE[name]))
    page.figures["SQL"] = _count_statements(_PEOPLE[name], path)
    return page


def _count_statements(person: str, path: str) -> int:
    client = browser.sign_in_client(person)
    client.get(path)
    asked: list[str] = []

    def noted(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(noted):
        assert client.get(path).status_code == 200
    return len(asked)


def _time_answers(page: MeasuredPage, port: int) -> None:
    """Time the server alone, without the slow line."""
    cookies = {settings.SESSION_COOKIE_NAME: page.key}
    base = f"http://{LOOPBACK}:{port}"
    times: list[float] = []
    with httpx2.Client(base_url=base, cookies=cookies, trust_env=False) as client:
        for _ in range(ANSWERS):
            began = time.perf_counter()
            answer = client.get(page.path)
            times.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.status_code
    page.figures["gzip KB"] = len(gzip.compress(answer.content, 6)) / 1024
    page.figures["raw KB"] = len(answer.content) / 1024
    page.figures["server p95 ms"] = percentile(times, 95) * 1000


def _create_profile(chromium: Browser, port: int, name: str) -> StorageState:
    """The cookies of a sign-in, for profiles that have nothing else."""
    with _open_profile(chromium) as context:
        browser.sign_in(context.new_page(), port, name)
        return context.storage_state()


@contextmanager
def _open_profile(
    chromium: Browser, signed_in: StorageState | None = None
) -> Iterator[BrowserContext]:
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800}, storage_state=signed_in
    )
    try:
        yield context
    finally:
        context.close()


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
    """Reject each of the first requests once."""
    page = context.new_page()
    base = f"http://{LOOPBACK}:{port}/requests"
    times = [
        _time_rejection(page, f"{base}/{request}/") for request in requests[:COMMITS]
    ]
    slowest = percentile(times, 95)
    return GoalResult(
        "W commit -> the new state on the page",
        f"p50 {format_ms(percentile(times, 50))}, p95 {format_ms(slowest)}",
        f"p95 <= {format_ms(COMMIT_P95_S)}",
        slowest <= COMMIT_P95_S,
        f"n = {len(times)}",
    )


def _time_rejection(page: Page, url: str) -> float:
    """Seconds from the press of the button to the new state."""
    page.goto(url)
    page.click("[data-testid=verb-reject]")
    page.check("[name=reason_code] >> nth=0")
    page.evaluate(_WATCH_COMMIT)
    page.click("[data-testid=commit]")
    took = browser.wait_for_value(page, "window.took", "the new state did not come")
    return float(took) / 1000
