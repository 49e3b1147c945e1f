"""G5: from a proposal over HTTP to the bar "n new" on a reviewer's open queue page,
while a hundred event streams are held open beside it."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from playwright.sync_api import Page

from hitl.environment import LOOPBACK
from journal import clock
from policies.models import Person

from . import browser, held, processes, tasks
from .asked import build_proposal_body
from .report import GoalResult, Options, build_latency_result, print_text, format_times
from .seed import DECIDING, Seed

STREAMS = 100
QUEUE_P50_S, QUEUE_P99_S = 0.040, 0.080
_SAMPLES = 25  # for each second of the options
_MOST_NEW = 90  # the bar counts no further than 99
BETWEEN_S = (0.05, 0.15)
# When the page first says so, by the machine's clock: both ends have the same one.
_WATCH_BAR = """() => {
    window.seen = {}
    const bar = document.querySelector("#fresh")
    const look = () => {
        window.seen[parseInt(bar.textContent)] ??=
            performance.timeOrigin + performance.now()
    }
    new MutationObserver(look).observe(bar, {childList: true, subtree: true})
}"""


@dataclass
class Streams:
    """What the held streams have heard so far."""

    opened: int = 0
    events: int = 0

    async def listen(self, port: int, key: str, since: str) -> None:
        cookie = f"{settings.SESSION_COOKIE_NAME}={key}"
        path = f"/events/?since={quote(since)}"
        async with held.open_request(port, path, {"Cookie": cookie}) as reader:
            await reader.readuntil(b"data: ")
            self.opened += 1
            while True:
                await reader.readuntil(b"data: ")
                self.events += 1


@dataclass
class Proposer:
    """One agent after the other, over one kept-alive connection."""

    connection: http.client.HTTPConnection
    keys: list[str]
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def propose(self) -> float:
        """The time at which it was sent."""
        number = next(self.numbers)
        headers = {
            "Authorization": f"Bearer {self.keys[number % len(self.keys)]}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"{self.run}-{number}",
        }
        sent = json.dumps(build_proposal_body(f"{self.run}-{number}"))
        began = time.time()
        self.connection.request("POST", "/api/v1/proposals", sent, headers)
        answer = self.connection.getresponse()
        said = answer.read()
        if answer.status != 201:
            raise LookupError(f"{answer.status} {said!r}")
        return began


@dataclass
class QueuePage:
    """The reviewer's browser, with the queue open."""

    page: Page
    base: str
    count: int = 0

    def open(self) -> None:
        """The queue anew: its bar counts from here."""
        self.page.goto(f"{self.base}/queue/")
        self.page.evaluate(_WATCH_BAR)
        self.page.wait_for_timeout(500)  # its stream is open
        self.count = 0

    def sample(self, proposer: Proposer) -> float:
        """Seconds from sending a proposal to the bar."""
        if self.count == _MOST_NEW:
            self.open()
        began = proposer.propose()
        self.count += 1
        end = time.monotonic() + held.PATIENCE_S
        while (seen := self.page.evaluate(f"window.seen[{self.count}]")) is None:
            if time.monotonic() > end:
                raise TimeoutError("the bar did not come")
            time.sleep(0.005)
        time.sleep(random.uniform(*BETWEEN_S))  # noqa: S311 no secret
        return float(seen) / 1000 - began


def create_session(person: Person) -> str:
    """A signed-in session's key."""
    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    store.create()
    return str(store.session_key)


def measure_queue_updates(seed: Seed, options: Options) -> GoalResult:
    """Rounds of single proposals, each awaited. Nothing asks the database from this
    thread once the browser's loop runs in it."""
    rounds: list[list[float]] = []
    crowd = Streams()
    with processes.start_webs(1) as (port,), held.hold_connections() as holder:
        _open_streams(holder, crowd, port)
        with _open_queue(port) as desk:
            proposer = Proposer(http.client.HTTPConnection(LOOPBACK, port), seed.keys)
            desk.open()
            for _ in range(5):
                desk.sample(proposer)
            for number in range(options.rounds):
                n = round(_SAMPLES * options.seconds)
                rounds.append([desk.sample(proposer) for _ in range(n)])
                print_text(
                    f"G5 round {number + 1}: {format_times(rounds[-1])}, {crowd.events} heard"
                )
                tasks.connect_broker().flushdb()
    return _build_queue_result(rounds)


def _open_streams(holder: held.ConnectionHolder, crowd: Streams, port: int) -> None:
    """Open the streams, of several people: nobody may hold a hundred."""
    since = clock.now().isoformat()
    keys = [create_session(one) for one in Person.objects.filter(username__in=DECIDING)]
    for number in range(STREAMS):
        key = keys[number % len(keys)]
        holder.start(partial(crowd.listen, port, key, since))
    held.wait_until(lambda: crowd.opened == STREAMS, "the streams do not open")


@contextmanager
def _open_queue(port: int) -> Iterator[QueuePage]:
    with browser.open_chromium() as chromium:
        page = chromium.new_page()
        yield QueuePage(page, browser.sign_in(page, port))


def _build_queue_result(rounds: list[list[float]]) -> GoalResult:
    return build_latency_result(
        "G5 propose -> n new on the page",
        rounds,
        p50=QUEUE_P50_S,
        p99=QUEUE_P99_S,
        under=f"{STREAMS} streams open",
    )
