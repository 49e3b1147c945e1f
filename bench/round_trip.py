"""G1 and G2: the rate of one gated round trip beside the floor's, and what it writes.

G2 counts WAL flushes of client connections, as PostgreSQL itself counts them; nothing
else writes to this server meanwhile.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import psycopg
from django.db import connections

from . import callables, clients
from .load import MakeClient, Run, run_clients
from .peers import runners
from .report import (
    GoalResult,
    Options,
    format_clients,
    format_ratio,
    join_values,
    print_text,
)
from .seed import Seed

THREADS = (1, 4, 16)
RATE_BAR = 0.45


@dataclass(frozen=True, slots=True)
class RoundTripRound:
    """One stretch of each at one number of clients: the floor, the product, and the
    peers that take part, by their names."""

    raw: Run
    ours: Run
    peers: dict[str, Run]


Rounds = dict[int, list[RoundTripRound]]  # by the number of clients


def measure_round_trips(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure the floor and the product in turn, each round in the other order, and
    then the peers."""
    rounds: Rounds = defaultdict(list)
    with ExitStack() as stack:
        peers = (
            stack.enter_context(runners.start_round_trips()) if options.peers else []
        )
        for number in range(options.rounds):
            for threads in THREADS:
                raw, ours = run_both(seed, threads, number, options.seconds)
                beside = {
                    runner.title: runner.run(clients=threads, seconds=options.seconds)
                    for runner in peers
                }
                rounds[threads].append(RoundTripRound(raw, ours, beside))
            print_text(f"G1 round {number + 1}: {_describe_progress(rounds)}")
    return (
        *(_build_round_trip_result(*series, options) for series in rounds.items()),
        *_build_peer_results(rounds, options),
    )


def run_both(seed: Seed, threads: int, number: int, seconds: float) -> tuple[Run, Run]:
    """One stretch of the floor and one of the product, in this order or the other."""

    def raw() -> Run:
        return run_clients(clients.open_floor_client, threads=threads, seconds=seconds)

    def ours() -> Run:
        make = partial(clients.open_product_client, seed)
        run = run_clients(make, threads=threads, seconds=seconds)
        callables.empty_broker()
        return run

    if number % 2:
        second, first = ours(), raw()
        return first, second
    return raw(), ours()


def _describe_progress(rounds: Rounds) -> str:
    last = [series[-1] for series in rounds.values()]
    text = join_values(f"{lap.ours.rate:.0f}/s of {lap.raw.rate:.0f}/s" for lap in last)
    for title in last[0].peers:
        rates = join_values(f"{lap.peers[title].rate:.0f}/s" for lap in last)
        text += f"; {title} {rates}"
    return text


def _build_round_trip_result(
    threads: int, rounds: list[RoundTripRound], options: Options
) -> GoalResult:
    ratios = [lap.ours.rate / lap.raw.rate for lap in rounds]
    raw = median([lap.raw.rate for lap in rounds])
    ours = median([lap.ours.rate for lap in rounds])
    return GoalResult(
        f"G1 round trip, {format_clients(threads)}",
        f"{format_ratio(ratios)} x, {ours:.0f}/s",
        f">= {RATE_BAR} x the floor",
        median(ratios) >= RATE_BAR,
        f"n = {sum(lap.ours.count for lap in rounds)} actions,"
        f" floor {sum(lap.raw.count for lap in rounds)}, {options.rounds} rounds",
        floor=f"{raw:.0f}/s",
    )


def _build_peer_results(rounds: Rounds, options: Options) -> Iterator[GoalResult]:
    for bars in runners.ROUND_TRIP_BARS:
        for threads, series in rounds.items():
            if not options.peers and threads not in bars.bars:
                continue  # neither measured nor asked for
            yield _build_peer_result(bars, threads, series, options)


def _build_peer_result(
    peer: runners.PeerBars, threads: int, rounds: list[RoundTripRound], options: Options
) -> GoalResult:
    goal = f"G1 beside {peer.title}, {format_clients(threads)}"
    bar = f">= {peer.bars[threads]:g} x" if threads in peer.bars else ""
    runs = [lap.peers[peer.title] for lap in rounds if peer.title in lap.peers]
    if not runs:
        return GoalResult(goal, "not measured: needs PEERS=1", bar, None, "")
    ratios = [lap.ours.rate / lap.peers[peer.title].rate for lap in rounds]
    rate = median([run.rate for run in runs])
    floor = median([lap.peers[peer.title].rate / lap.raw.rate for lap in rounds])
    return GoalResult(
        goal,
        f"{format_ratio(ratios)} x",
        bar,
        median(ratios) >= peer.bars[threads] if bar else None,
        f"n = {sum(run.count for run in runs)} of the peer, {options.rounds} rounds",
        floor=f"peer {rate:.0f}/s, {floor:.2f} x the floor",
    )


FLUSHES_BAR, WAL_BAR, STORED_BAR = 4.0, 2.5, 4.0
_SLACK = 0.1  # flushes an action; a few belong to the connection itself
_ACTIONS = 100  # for each second of the options
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


def measure_writes(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """One client, so that no commit rides on another's flush."""
    connections.close_all()
    n = round(_ACTIONS * options.seconds)
    ours = partial(clients.open_product_client, seed)
    rounds: list[tuple[Written, Written]] = []
    with clients.connect_database(autocommit=True) as watcher:
        # A page's first change after a checkpoint logs the whole page: get it over.
        _write_both(watcher, ours, n)
        for number in range(options.rounds):
            rounds.append(_write_both(watcher, ours, n))
            print_text(f"G2 round {number + 1}: {rounds[-1][1]}; floor {rounds[-1][0]}")
    return _build_writes_results(rounds, n)


def _write_both(
    watcher: psycopg.Connection[Any], ours: MakeClient, n: int
) -> tuple[Written, Written]:
    raw = _count_writes(watcher, clients.open_floor_client, n, raw=True)
    written = _count_writes(watcher, ours, n, raw=False)
    callables.empty_broker()
    return raw, written


def _count_writes(
    watcher: psycopg.Connection[Any], make: MakeClient, n: int, *, raw: bool
) -> Written:
    before = _read_counters(watcher, raw=raw)
    with make(0) as action:
        for _ in range(n):
            action()
    after = _read_counters(watcher, raw=raw)
    return Written(*((b - a) / n for a, b in zip(before, after, strict=True)))


def _read_counters(watcher: psycopg.Connection[Any], *, raw: bool) -> list[float]:
    """A connection adds what it counted when it ends, so wait until all have."""
    end = time.monotonic() + 10
    while _read_row(watcher, _OTHERS, []) != [0.0] and time.monotonic() < end:
        time.sleep(0.02)
    return _read_row(watcher, _COUNTERS, [raw])


def _read_row(
    watcher: psycopg.Connection[Any], sql: str, given: list[Any]
) -> list[float]:
    return [float(value or 0) for value in clients.read_row(watcher, sql, given)]


def _build_writes_results(
    rounds: list[tuple[Written, Written]], n: int
) -> tuple[GoalResult, ...]:
    raw, ours = (_median_writes([pair[side] for pair in rounds]) for side in (0, 1))
    wal = [product.wal / floor.wal for floor, product in rounds]
    stored = [product.stored / floor.stored for floor, product in rounds]
    basis = f"n = {n * len(rounds)} of each, {len(rounds)} rounds"
    return (
        GoalResult(
            "G2 flushes per action",
            f"{ours.flushes:.2f}",
            f"{FLUSHES_BAR:.0f}",
            ours.flushes <= FLUSHES_BAR + _SLACK,
            basis,
            floor=f"{raw.flushes:.2f}",
        ),
        GoalResult(
            "G2 WAL per action",
            f"{format_ratio(wal)} x, {ours.wal / 1000:.1f} kB",
            f"<= {WAL_BAR} x the floor's",
            median(wal) <= WAL_BAR,
            basis,
            floor=f"{raw.wal / 1000:.1f} kB",
        ),
        GoalResult(
            "G2 stored per action",
            f"{format_ratio(stored)} x, {ours.stored / 1000:.1f} kB",
            f"<= {STORED_BAR:.0f} x the floor's",
            median(stored) <= STORED_BAR,
            basis,
            floor=f"{raw.stored / 1000:.1f} kB",
        ),
    )


def _median_writes(rounds: list[Written]) -> Written:
    return Written(
        *(median([getattr(w, name) for w in rounds]) for name in Written.__slots__)
    )
