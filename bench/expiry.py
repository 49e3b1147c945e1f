"""G8: ten thousand deadlines in one second, while people still decide: how long until
each is over, by the worker's own sweeps, and what was decided after its deadline."""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from django.db import connection

from agents.idempotency import StoredAnswer
from journal.errors import DomainError
from reviews.choices import Verdict

from . import floor, processes
from .load import median
from .product import Client
from .report import Line, Options, ratio, say
from .seed import House

COUNT = 10_000
BAR_S = 5.0
MOST_ROUNDS = 3  # asking so many takes a minute each time
CLIENTS = 4
AHEAD_S = 3  # the second in question begins so long after it was fixed
PATIENCE_S = 60.0
_DUE = """
UPDATE reviews_approvalrequest
SET expires_at = %(from)s::timestamptz + random() * interval '1 second'
WHERE status = 'pending'
"""
_AHEAD = "SELECT clock_timestamp() + make_interval(secs => %s)"
_LEFT = "SELECT count(*) FROM reviews_approvalrequest WHERE status = 'pending'"
_SINCE = "SELECT extract(epoch FROM clock_timestamp() - %s)"
_OVER = """
SELECT count(*) FILTER (WHERE status = 'expired' AND settled_at < expires_at),
       count(*) FILTER (WHERE status <> 'expired' AND settled_at >= expires_at),
       count(*) FILTER (WHERE status <> 'expired')
FROM reviews_approvalrequest WHERE expires_at >= %(from)s::timestamptz
  AND expires_at < %(from)s::timestamptz + interval '1 second'
"""


def measure(house: House, options: Options) -> Line:
    """Seconds from the first of the deadlines until none of them waits."""
    took, early, late, decided = [], 0, 0, 0
    rounds = min(options.rounds, MOST_ROUNDS)
    for number in range(rounds):
        asked = _ask(house)
        with processes.worker(), floor.connect(autocommit=True) as watch:
            seconds, found = _expire(house, asked, watch)
        took.append(seconds)
        early, late, decided = early + found[0], late + found[1], decided + found[2]
        say(f"G8 round {number + 1}: {seconds:.2f} s, {found[2]} decided in time")
    return Line(
        "G8 expiry",
        f"{ratio(took)} s, {late} decided after the deadline, {early} expired before",
        f"<= {BAR_S:.0f} s, 0 decided after the deadline",
        median(took) <= BAR_S and not late and not early,
        f"n = {COUNT:,} in one second, {decided} decided meanwhile, {rounds} rounds",
    )


def _ask(house: House) -> list[StoredAnswer]:
    def some(number: int) -> list[StoredAnswer]:
        try:
            client = Client(house, number)
            return [client.propose() for _ in range(COUNT // CLIENTS)]
        finally:
            connection.close()

    with ThreadPoolExecutor(CLIENTS) as pool:
        return list(itertools.chain(*pool.map(some, range(CLIENTS))))


def _expire(
    house: House, asked: Sequence[StoredAnswer], watch: psycopg.Connection[Any]
) -> tuple[float, tuple[int, int, int]]:
    (begins,) = _row(watch, _AHEAD, [AHEAD_S])
    watch.execute(_DUE, {"from": begins})
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        person = pool.submit(_decide, house, asked, over)
        seconds = _wait(watch, begins)
        over.set()
        person.result()
    early, late, decided = _row(watch, _OVER, {"from": begins})
    return seconds, (early, late, decided)


def _wait(watch: psycopg.Connection[Any], begins: Any) -> float:
    while True:
        (left,), (since,) = _row(watch, _LEFT), _row(watch, _SINCE, [begins])
        if not left:
            return float(since)
        if since > PATIENCE_S:
            raise TimeoutError(f"{left} are still waiting after {since:.0f} s")
        time.sleep(0.02)


def _row(watch: psycopg.Connection[Any], sql: str, given: Any = None) -> Any:
    found = watch.execute(sql, given).fetchone()
    assert found is not None
    return found


def _decide(house: House, asked: Sequence[StoredAnswer], over: threading.Event) -> None:
    """Somebody who goes on deciding, in time or too late."""
    client = Client(house, 0)
    try:
        for stored in random.sample(asked, len(asked)):
            if over.is_set():
                return
            try:
                client.decide(stored, Verdict.APPROVE)
            except DomainError:
                continue  # too late: that is what is counted
    finally:
        connection.close()
