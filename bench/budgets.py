"""The budgets of a page (ux.md 6.3): what it weighs, how soon the server answers, and
how soon it can be used by somebody far away on a slow machine."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field, fields
from typing import Any

import httpx2
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, StorageState

from hitl.environment import LOOPBACK
from policies.models import Person

from . import browser, commits, pages, processes, slow
from .live import session
from .load import median, percentile
from .report import Line, Options, say
from .seed import House
from .slow import Felt

ASKED = 40  # times that the server is asked for each page
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
WHO = {"queue": "rita", "review": "rita", "batch": "rita", "log": "sue"}
_FELT = {
    "painted": "FCP ms",
    "largest": "LCP ms",
    "usable": "usable ms",
    "stroke": "INP ms",
    "shift": "CLS",
    "blocked": "TBT ms",
    "requests": "requests",
}


@dataclass
class Visited:
    """One page: its address, its bytes, and every figure of it by its name."""

    name: str
    path: str
    person: Person
    key: str
    figures: dict[str, float] = field(default_factory=dict)
    felt: list[Felt] = field(default_factory=list)

    @property
    def bars(self) -> Mapping[str, float]:
        return dict(zip(_NAMES, _BARS[self.name], strict=False)) | EVERYWHERE

    @property
    def line(self) -> Line:
        """Each figure beside its bar."""
        said = [f"{n} {self.figures[n]:.4g}/{bar:g}" for n, bar in self.bars.items()]
        over = [n for n, bar in self.bars.items() if self.figures[n] > bar]
        return Line(
            f"W {self.name}",
            ", ".join(said),
            "after each slash",
            not over,
            f"n = {ASKED} answers, {len(self.felt)} slow visits",
        )

    def settle(self) -> None:
        """The medians of what was felt."""
        for place in fields(Felt):
            found = median([getattr(one, place.name) for one in self.felt])
            label = _FELT[place.name]
            self.figures[label] = found * 1000 if label.endswith("ms") else found


def measure(house: House, options: Options) -> tuple[Line, ...]:
    """One line a page, and one of what a commit takes."""
    call_command("collectstatic", interactive=False, verbosity=0)
    opened = pages.furnish(house, commits.COUNT)
    visited = [_visited(name, path) for name, path in opened.paths.items()]
    with processes.webs(1) as (port,):
        for one in visited:
            _ask(one, port)
        with browser.chromium() as chromium:
            signed_in = {
                name: _sign_in(chromium, port, name) for name in set(WHO.values())
            }
            for number in range(options.rounds):
                for one in visited:
                    with _context(chromium, signed_in[WHO[one.name]]) as context:
                        url = f"http://{LOOPBACK}:{port}{one.path}"
                        one.felt.append(slow.load(context, url, one.name))
                felt = [f"{v.name} {astuple(v.felt[-1])}" for v in visited]
                say(f"W round {number + 1}: {'; '.join(felt)}")
            with _context(chromium, signed_in["rita"]) as context:
                decided = commits.measure(context, port, opened.requests)
    for one in visited:
        one.settle()
    return (*(one.line for one in visited), decided)


def _visited(name: str, path: str) -> Visited:
    person = Person.objects.get(username=WHO[name])
    found = Visited(name, path, person, session(person))
    found.figures["SQL"] = _statements(person, path)
    return found


def _statements(person: Person, path: str) -> int:
    """What a second view asks the database."""
    client = Client(HTTP_HOST=httpx2.URL(settings.HOLDPOINT.base_url).netloc.decode())
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    client.get(path)
    asked: list[str] = []

    def noted(execute: Any, sql: str, *rest: Any) -> Any:
        asked.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(noted):
        assert client.get(path).status_code == 200
    return len(asked)


def _ask(one: Visited, port: int) -> None:
    """The server alone, with nothing slow between."""
    cookies = {settings.SESSION_COOKIE_NAME: one.key}
    base = f"http://{LOOPBACK}:{port}"
    times: list[float] = []
    with httpx2.Client(base_url=base, cookies=cookies, trust_env=False) as client:
        for _ in range(ASKED):
            began = time.perf_counter()
            answer = client.get(one.path)
            times.append(time.perf_counter() - began)
            assert answer.status_code == 200, answer.status_code
    one.figures["gzip KB"] = len(gzip.compress(answer.content, 6)) / 1024
    one.figures["raw KB"] = len(answer.content) / 1024
    one.figures["server p95 ms"] = percentile(times, 95) * 1000


def _sign_in(chromium: Browser, port: int, name: str) -> StorageState:
    """The cookies, for profiles that have nothing else."""
    with _context(chromium) as context:
        browser.sign_in(context.new_page(), port, name)
        return context.storage_state()


@contextmanager
def _context(
    chromium: Browser, signed_in: StorageState | None = None
) -> Iterator[BrowserContext]:
    context = chromium.new_context(
        viewport={"width": 1280, "height": 800}, storage_state=signed_in
    )
    try:
        yield context
    finally:
        context.close()
