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
from .asked import body
from .report import Line, Options, latency, say, times
from .seed import DECIDING, House

STREAMS = 100
P50_S, P99_S = 0.040, 0.080
SAMPLES = 25  # for each second of the options
MOST_NEW = 90  # the bar counts no further than 99
BETWEEN_S = (0.05, 0.15)
# When the page first says so, by the machine's clock: both ends have the same one.
_WATCH = """() => {
    window.seen = {}
    const bar = document.querySelector("#fresh")
    const look = () => {
        window.seen[parseInt(bar.textContent)] ??=
            performance.timeOrigin + performance.now()
    }
    new MutationObserver(look).observe(bar, {childList: true, subtree: true})
}"""


@dataclass
class Crowd:
    """What the held streams have heard so far."""

    opened: int = 0
    events: int = 0

    async def listen(self, port: int, key: str, since: str) -> None:
        cookie = f"{settings.SESSION_COOKIE_NAME}={key}"
        path = f"/events/?since={quote(since)}"
        async with held.asking(port, path, {"Cookie": cookie}) as reader:
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
        sent = json.dumps(body(f"{self.run}-{number}"))
        began = time.time()
        self.connection.request("POST", "/api/v1/proposals", sent, headers)
        answer = self.connection.getresponse()
        said = answer.read()
        if answer.status != 201:
            raise LookupError(f"{answer.status} {said!r}")
        return began


@dataclass
class Desk:
    """The reviewer's browser, with the queue open."""

    page: Page
    base: str
    count: int = 0

    def open(self) -> None:
        """The queue anew: its bar counts from here."""
        self.page.goto(f"{self.base}/queue/")
        self.page.evaluate(_WATCH)
        self.page.wait_for_timeout(500)  # its stream is open
        self.count = 0

    def sample(self, proposer: Proposer) -> float:
        """Seconds from sending a proposal to the bar."""
        if self.count == MOST_NEW:
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


def session(person: Person) -> str:
    """A signed-in session's key."""
    store = SessionStore()
    store[SESSION_KEY] = str(person.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = person.get_session_auth_hash()
    store.create()
    return str(store.session_key)


def measure(house: House, options: Options) -> Line:
    """Rounds of single proposals, each awaited. Nothing asks the database from this
    thread once the browser's loop runs in it."""
    rounds: list[list[float]] = []
    crowd = Crowd()
    with processes.webs(1) as (port,), held.holder() as holder:
        _fill(holder, crowd, port)
        with _desk(port) as desk:
            proposer = Proposer(http.client.HTTPConnection(LOOPBACK, port), house.keys)
            desk.open()
            for _ in range(5):
                desk.sample(proposer)
            for number in range(options.rounds):
                n = round(SAMPLES * options.seconds)
                rounds.append([desk.sample(proposer) for _ in range(n)])
                say(f"G5 round {number + 1}: {times(rounds[-1])}, {crowd.events} heard")
                tasks.broker().flushdb()
    return _line(rounds)


def _fill(holder: held.Holder, crowd: Crowd, port: int) -> None:
    """Open the streams, of several people: nobody may hold a hundred."""
    since = clock.now().isoformat()
    keys = [session(one) for one in Person.objects.filter(username__in=DECIDING)]
    for number in range(STREAMS):
        key = keys[number % len(keys)]
        holder.start(partial(crowd.listen, port, key, since))
    held.until(lambda: crowd.opened == STREAMS, "the streams do not open")


@contextmanager
def _desk(port: int) -> Iterator[Desk]:
    with browser.chromium() as chromium:
        page = chromium.new_page()
        yield Desk(page, browser.sign_in(page, port))


def _line(rounds: list[list[float]]) -> Line:
    return latency(
        "G5 propose -> n new on the page",
        rounds,
        p50=P50_S,
        p99=P99_S,
        under=f"{STREAMS} streams open",
    )
