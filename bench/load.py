"""Clients that do one thing as often as they can, and what came of it."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

WARM_UP = 3  # actions of each client that nobody counts

MakeClient = Callable[[int], AbstractContextManager[Callable[[], object]]]


@dataclass(frozen=True, slots=True)
class Run:
    """What some clients did in one stretch. Times are in seconds."""

    count: int
    seconds: float
    times: list[float] = field(repr=False)

    @property
    def rate(self) -> float:
        """Actions a second."""
        return self.count / self.seconds

    def at(self, percent: float) -> float:
        """The time within which so many of a hundred were done."""
        return percentile(self.times, percent)


def percentile(times: Sequence[float], percent: float) -> float:
    """By nearest rank: always a time that was really measured."""
    ordered = sorted(times)
    return ordered[max(math.ceil(len(ordered) * percent / 100), 1) - 1]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def run_clients(make: MakeClient, *, threads: int, seconds: float) -> Run:
    """So many threads, each with a client of its own, for so long.

    Each warms up, then all begin together; an action that was begun is counted.
    """
    start = threading.Barrier(threads, timeout=120)
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(_run_client, make, number, start, seconds)
            for number in range(threads)
        ]
        stretches = [job.result() for job in jobs]
    times = [taken for _, _, taken_all in stretches for taken in taken_all]
    began = min(began for began, _, _ in stretches)
    ended = max(ended for _, ended, _ in stretches)
    return Run(len(times), ended - began, times)


def _run_client(
    make: MakeClient, number: int, start: threading.Barrier, seconds: float
) -> tuple[float, float, list[float]]:
    try:
        with make(number) as action:
            for _ in range(WARM_UP):
                action()
            start.wait()
            return _repeat_action(action, seconds)
    except BaseException:
        start.abort()  # or the others would wait for who is not coming
        raise


def _repeat_action(
    action: Callable[[], object], seconds: float
) -> tuple[float, float, list[float]]:
    times: list[float] = []
    began = now = time.monotonic()
    while now < began + seconds:
        action()
        after = time.monotonic()
        times.append(after - now)
        now = after
    return began, now, times
