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
from .product import ProductClient
from .report import GoalResult, Options, format_ratio, print_text
from .seed import Seed

DUE = 10_000
EXPIRY_BAR_S = 5.0
MOST_ROUNDS = 3  # asking so many takes a minute each time
_CLIENTS = 4
_AHEAD_S = 3  # the second in question begins so long after it was fixed
EXPIRY_PATIENCE_S = 60.0
_SET_DEADLINES = """
UPDATE reviews_approvalrequest
SET expires_at = %(from)s::timestamptz + random() * interval '1 second'
WHERE status = 'pending'
"""
_CHOOSE_SECOND = "SELECT clock_timestamp() + make_interval(secs => %s)"
_LEFT = "SELECT count(*) FROM reviews_approvalrequest WHERE status = 'pending'"
_SINCE = "SELECT extract(epoch FROM clock_timestamp() - %s)"
_COUNT_ENDS = """
SELECT count(*) FILTER (WHERE status = 'expired' AND settled_at < expires_at),
       count(*) FILTER (WHERE status <> 'expired' AND settled_at >= expires_at),
       count(*) FILTER (WHERE status <> 'expired')
FROM reviews_approvalrequest WHERE expires_at >= %(from)s::timestamptz
  AND expires_at < %(from)s::timestamptz + interval '1 second'
"""


def measure_expiry(seed: Seed, options: Options) -> GoalResult:
    """Seconds from the first of the deadlines until none of them waits."""
    took, early, late, decided = [], 0, 0, 0
    rounds = min(options.rounds, MOST_ROUNDS)
    for number in range(rounds):
        asked = _propose_all(seed)
        with processes.start_worker(), floor.connect_database(autocommit=True) as watch:
            seconds, found = _time_expiry(seed, asked, watch)
        took.append(seconds)
        early, late, decided = early + found[0], late + found[1], decided + found[2]
        print_text(
            f"G8 round {number + 1}: {seconds:.2f} s, {found[2]} decided in time"
        )
    return GoalResult(
        "G8 expiry",
        f"{format_ratio(took)} s, {late} decided after the deadline, {early} expired before",
        f"<= {EXPIRY_BAR_S:.0f} s, 0 decided after the deadline",
        median(took) <= EXPIRY_BAR_S and not late and not early,
        f"n = {DUE:,} in one second, {decided} decided meanwhile, {rounds} rounds",
    )


def _propose_all(seed: Seed) -> list[StoredAnswer]:
    def some(number: int) -> list[StoredAnswer]:
        try:
            client = ProductClient(seed, number)
            return [client.propose() for _ in range(DUE // _CLIENTS)]
        finally:
            connection.close()

    with ThreadPoolExecutor(_CLIENTS) as pool:
        return list(itertools.chain(*pool.map(some, range(_CLIENTS))))


def _time_expiry(
    seed: Seed, asked: Sequence[StoredAnswer], watch: psycopg.Connection[Any]
) -> tuple[float, tuple[int, int, int]]:
    (begins,) = _read_row(watch, _CHOOSE_SECOND, [_AHEAD_S])
    watch.execute(_SET_DEADLINES, {"from": begins})
    over = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        person = pool.submit(_decide_until, seed, asked, over)
        seconds = _wait_until_expired(watch, begins)
        over.set()
        person.result()
    early, late, decided = _read_row(watch, _COUNT_ENDS, {"from": begins})
    return seconds, (early, late, decided)


def _wait_until_expired(watch: psycopg.Connection[Any], begins: Any) -> float:
    while True:
        (left,), (since,) = _read_row(watch, _LEFT), _read_row(watch, _SINCE, [begins])
        if not left:
            return float(since)
        if since > EXPIRY_PATIENCE_S:
            raise TimeoutError(f"{left} are still waiting after {since:.0f} s")
        time.sleep(0.02)


def _read_row(watch: psycopg.Connection[Any], sql: str, given: Any = None) -> Any:
    found = watch.execute(sql, given).fetchone()
    assert found is not None
    return found


def _decide_until(
    seed: Seed, asked: Sequence[StoredAnswer], over: threading.Event
) -> None:
    """Somebody who goes on deciding, in time or too late."""
    client = ProductClient(seed, 0)
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
