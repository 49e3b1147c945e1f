"""What a piece of work costs, in a measure that a slow or a busy machine does not
change: processor time beside that of a plain loop, both taken now."""

from __future__ import annotations

import time
from collections.abc import Callable

LOOPS = 1_000_000
# How long the loop takes on a free core of a recent machine.
LOOP_SECONDS = 0.01
ATTEMPTS = 4


def costs_less(work: Callable[[], object], seconds: float) -> bool:
    """Whether the work takes less than so many seconds of a free core. A neighbour who
    takes the caches away can spoil one attempt, not each."""
    return any(_measure(work) < seconds for _ in range(ATTEMPTS))


def _measure(work: Callable[[], object]) -> float:
    before = _take_time(_loop)
    taken = _take_time(work)
    slowness = max(before, _take_time(_loop)) / LOOP_SECONDS
    return taken / max(slowness, 1)


def _take_time(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _loop() -> None:
    for _ in range(LOOPS):
        pass
