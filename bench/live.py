"""G5 and G11: how soon a reviewer's page and a waiting agent hear of a change.

G5 is the time from a proposal over HTTP to the bar "n new" on an open queue page, with
a hundred event streams held open. G11 is the time from the commit of a decision to the
agent that waits for it by long-poll, while a hundred others wait.
"""

from __future__ import annotations

import http.client
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import connection
from playwright.sync_api import Page, Request

from agents.idempotency import StoredAnswer
from hitl.environment import LOOPBACK
from journal import clock
from reviews.choices import Verdict
from reviews.models import Proposal
from world.cast import DECIDERS

from . import browser, callables, clients, load, servers
from .report import GoalResult, Options, build_latency_results, format_times, print_text
from .seed import ProposalCalls, Seed

STREAMS = 100
QUEUE_P50_S, QUEUE_P99_S = 0.040, 0.080
_CHANGES = 25  # of each kind, for each second of the options
WAITERS = 100
LONG_POLL_P50_S, LONG_POLL_P99_S = 0.020, 0.080
_BETWEEN_DECISIONS_S = 0.03
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
    """How many event streams are open, and how many events they have received."""

    opened: int = 0
    events: int = 0

    async def listen(self, port: int, key: str, since: str) -> None:
        cookie = f"{settings.SESSION_COOKIE_NAME}={key}"
        path = f"/events/?since={quote(since)}"
        async with load.open_request(port, path, {"Cookie": cookie}) as reader:
            await reader.readuntil(b"data: ")
            self.opened += 1
            while True:
                await reader.readuntil(b"data: ")
                self.events += 1


@dataclass(frozen=True)
class Proposer:
    """Proposes for one agent after the other, over one kept-alive connection."""

    connection: http.client.HTTPConnection
    calls: ProposalCalls

    def propose(self) -> float:
        """Propose, and return the time at which the request was sent."""
        call = self.calls.build_next()
        began = time.time()
        load.exchange(
            self.connection, "POST", "/api/v1/proposals", call.headers, call.body
        )
        return began


@dataclass
class QueuePage:
    """The reviewer's browser, with the queue open."""

    page: Page
    base: str
    count: int = 0
    is_loading: bool = False
    fetched: list[str] = field(default_factory=list)  # since it was loaded

    def __post_init__(self) -> None:
        self.page.on("request", self._note_request)

    def _note_request(self, request: Request) -> None:
        if not self.is_loading:
            self.fetched.append(request.url)

    def open(self) -> None:
        """Load the queue, from when on its bar counts."""
        self.is_loading = True
        self.page.goto(f"{self.base}/queue/")
        self.page.evaluate(_WATCH_BAR)
        self.page.wait_for_timeout(500)  # its stream is open
        self.is_loading = False
        self.count = 0

    def sample(self, proposer: Proposer) -> float:
        """Seconds from sending a proposal to the bar."""
        if self.count == _MOST_NEW:
            self.open()
        began = proposer.propose()
        self.count += 1
        seen = f"window.seen[{self.count}]"
        shown = browser.wait_for_value(self.page, seen, "the bar did not come")
        time.sleep(random.uniform(*BETWEEN_S))  # noqa: S311 no secret
        return float(shown) / 1000 - began


def measure_queue_updates(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure rounds of single proposals, each awaited. This thread queries no database
    once the browser's loop runs in it."""
    rounds: list[list[float]] = []
    streams = Streams()
    with servers.start_webs(1) as (port,), load.hold_connections() as holder:
        _open_streams(holder, streams, port)
        with _open_queue(port) as queue:
            connection = http.client.HTTPConnection(LOOPBACK, port)
            proposer = Proposer(connection, ProposalCalls(seed.keys, per_thread=1))
            queue.open()
            for _ in range(5):
                queue.sample(proposer)
            for number in range(options.rounds):
                n = round(_CHANGES * options.seconds)
                rounds.append([queue.sample(proposer) for _ in range(n)])
                times = format_times(rounds[-1])
                print_text(f"G5 round {number + 1}: {times}, {streams.events} heard")
                callables.empty_broker()
    return (
        *build_latency_results(
            "G5 propose -> n new on the page",
            rounds,
            p50=QUEUE_P50_S,
            p99=QUEUE_P99_S,
            under=f"{STREAMS} streams open",
        ),
        _build_fetch_result(queue, rounds),
    )


def _open_streams(holder: load.ConnectionHolder, streams: Streams, port: int) -> None:
    """Open the streams, of several people: nobody may hold a hundred."""
    since = clock.now().isoformat()
    keys = [browser.create_session(name) for name in DECIDERS]
    for number in range(STREAMS):
        key = keys[number % len(keys)]
        holder.start(partial(streams.listen, port, key, since))
    load.wait_until(lambda: streams.opened == STREAMS, "the streams do not open")


@contextmanager
def _open_queue(port: int) -> Iterator[QueuePage]:
    with browser.open_chromium() as chromium:
        page = chromium.new_page()
        yield QueuePage(page, browser.sign_in(page, port))


def _build_fetch_result(queue: QueuePage, rounds: list[list[float]]) -> GoalResult:
    return GoalResult(
        "G5 fetches of the page",
        f"{len(queue.fetched)}",
        "0: the event carries the count",
        not queue.fetched,
        f"n = {sum(map(len, rounds))} events",
    )


@dataclass
class Waiters:
    """Agents that wait by long-poll, and when each had its answer."""

    port: int
    sent: int = 0
    answered: dict[str, float] = field(default_factory=dict)

    async def wait(self, proposal: str, key: str) -> None:
        path = f"/api/v1/proposals/{proposal}?wait=60"
        headers = {"Authorization": f"Bearer {key}"}
        async with load.open_request(self.port, path, headers) as reader:
            self.sent += 1
            _, answer = await load.read_answer(reader)
            at = time.monotonic()
        if not re.search(rb'"status": ?"rejected"', answer):
            raise LookupError(answer.decode())
        self.answered[proposal] = at


@dataclass
class CommitClock:
    """Notes when a transaction was over: the first thing after it is the NOTIFY."""

    at: float = 0.0

    def __call__(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        if "pg_notify" in sql:
            self.at = time.monotonic()
        return execute(sql, *rest)


def measure_long_poll(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure rounds of single decisions, each awaited."""
    rounds: list[list[float]] = []
    with servers.start_webs(1) as (port,), load.hold_connections() as holder:
        for number in range(options.rounds):
            n = round(_CHANGES * options.seconds)
            rounds.append(_time_decisions(seed, holder, port, n))
            print_text(f"G11 round {number + 1}: {format_times(rounds[-1])}")
            callables.empty_broker()
    return build_latency_results(
        "G11 decided -> the waiting agent knows",
        rounds,
        p50=LONG_POLL_P50_S,
        p99=LONG_POLL_P99_S,
        under=f"{WAITERS} others waiting",
    )


def _time_decisions(
    seed: Seed, holder: load.ConnectionHolder, port: int, n: int
) -> list[float]:
    """Decide `n` requests whose agents wait, beside a hundred that go on waiting."""
    client, waiters = clients.ProductClient(seed, 0), Waiters(port)
    stored = [client.propose() for _ in range(n + WAITERS)]
    keys = _map_keys(seed, [answer.proposal for answer in stored])
    for proposal, key in keys.items():
        holder.start(partial(waiters.wait, proposal, key))
    load.wait_until(lambda: waiters.sent == len(stored), "nobody waits")
    time.sleep(2.0)  # all of them were asked about once, and are held
    return [_time_decision(client, waiters, answer) for answer in stored[:n]]


def _map_keys(seed: Seed, proposals: list[str]) -> dict[str, str]:
    """The key of each proposal's own agent."""
    named = zip(seed.agents, seed.keys, strict=True)
    of = {agent.slug: key for agent, key in named}
    rows = Proposal.objects.filter(pk__in=proposals).values_list("pk", "agent")
    return {pk: of[agent] for pk, agent in rows}


def _time_decision(
    client: clients.ProductClient, waiters: Waiters, stored: StoredAnswer
) -> float:
    """Seconds from the commit to the whole answer."""
    committed = CommitClock()
    with connection.execute_wrapper(committed):
        client.decide(stored, Verdict.REJECT)
    load.wait_until(lambda: stored.proposal in waiters.answered, "it was not told")
    time.sleep(_BETWEEN_DECISIONS_S)
    return waiters.answered[stored.proposal] - committed.at
