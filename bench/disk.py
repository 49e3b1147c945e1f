"""G2: what one action writes. WAL flushes are those of client connections, counted by
PostgreSQL itself; nothing else writes to this server meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from django.db import connections

from . import floor, product, tasks
from .load import MakeClient, median
from .report import Line, Options, say
from .seed import House

FLUSHES, WAL, STORED = 4.0, 2.5, 4.0
SLACK = 0.1  # flushes an action; a few belong to the connection itself
ACTIONS = 100  # for each second of the options
_COUNTERS = """
SELECT (SELECT sum(fsyncs) FROM pg_stat_io
        WHERE object = 'wal' AND backend_type = 'client backend'),
       pg_current_wal_insert_lsn() - '0/0',
       (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
        WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
          AND starts_with(relname, 'bench_') = %s)
"""
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True, slots=True)
class Written:
    """Per action: flushes, and bytes."""

    flushes: float
    wal: float
    stored: float

    def __str__(self) -> str:
        return (
            f"{self.flushes:.2f} flushes, {self.wal / 1000:.1f} kB WAL, "
            f"{self.stored / 1000:.1f} kB stored"
        )


def measure(house: House, options: Options) -> Line:
    """One client, so that no commit rides on another's flush."""
    connections.close_all()
    n = round(ACTIONS * options.seconds)
    ours = partial(product.client, house)
    rounds: list[tuple[Written, Written]] = []
    with floor.connect(autocommit=True) as watcher:
        # A page's first change after a checkpoint logs the whole page: get it over.
        _both(watcher, ours, n)
        for number in range(options.rounds):
            rounds.append(_both(watcher, ours, n))
            say(f"G2 round {number + 1}: {rounds[-1][1]}; floor {rounds[-1][0]}")
    return _line(rounds, n)


def _both(
    watcher: psycopg.Connection[Any], ours: MakeClient, n: int
) -> tuple[Written, Written]:
    raw = _written(watcher, floor.client, n, raw=True)
    mine = _written(watcher, ours, n, raw=False)
    tasks.broker().flushdb()
    return raw, mine


def _written(
    watcher: psycopg.Connection[Any], make: MakeClient, n: int, *, raw: bool
) -> Written:
    before = _counters(watcher, raw=raw)
    with make(0) as action:
        for _ in range(n):
            action()
    after = _counters(watcher, raw=raw)
    return Written(*((b - a) / n for a, b in zip(before, after, strict=True)))


def _counters(watcher: psycopg.Connection[Any], *, raw: bool) -> list[float]:
    """A connection adds what it counted when it ends, so wait until all have."""
    end = time.monotonic() + 10
    while _one(watcher, _OTHERS, []) != [0.0] and time.monotonic() < end:
        time.sleep(0.02)
    return _one(watcher, _COUNTERS, [raw])


def _one(watcher: psycopg.Connection[Any], sql: str, given: list[Any]) -> list[float]:
    found = watcher.execute(sql, given).fetchone()
    assert found is not None
    return [float(value or 0) for value in found]


def _line(rounds: list[tuple[Written, Written]], n: int) -> Line:
    raw, ours = (_median([pair[side] for pair in rounds]) for side in (0, 1))
    flushes, wal = ours.flushes, median([b.wal / a.wal for a, b in rounds])
    # Tables grow by whole pages, so a single round says little.
    stored = sum(b.stored for _, b in rounds) / sum(a.stored for a, _ in rounds)
    return Line(
        "G2 written per action",
        f"{flushes:.2f} flushes, {wal:.2f} x the floor's WAL, {stored:.2f} x its bytes "
        f"({ours}; floor {raw})",
        f"{FLUSHES:.0f} flushes, <= {WAL} x, <= {STORED:.0f} x",
        flushes <= FLUSHES + SLACK and wal <= WAL and stored <= STORED,
        f"n = {n * len(rounds)} of each, {len(rounds)} rounds",
    )


def _median(rounds: list[Written]) -> Written:
    return Written(
        *(median([getattr(w, name) for w in rounds]) for name in Written.__slots__)
    )
