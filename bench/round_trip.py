"""G1: one gated round trip beside the floor, at 1, 4 and 16 clients."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from . import floor, product, tasks
from .load import Run, clients, median
from .report import Line, Options, list_of, ratio, say
from .seed import House

THREADS = (1, 4, 16)
BAR = 0.45

Pair = tuple[Run, Run]  # the floor's and ours


def measure(house: House, options: Options) -> Line:
    """Both in turn, and each round in the other order."""
    pairs: dict[int, list[Pair]] = defaultdict(list)
    for number in range(options.rounds):
        for threads in THREADS:
            pairs[threads].append(_pair(house, threads, number, options.seconds))
        say(f"G1 round {number + 1}: {_progress(pairs)}")
    return _line(pairs, options)


def _pair(house: House, threads: int, number: int, seconds: float) -> Pair:
    def raw() -> Run:
        return clients(floor.client, threads=threads, seconds=seconds)

    def ours() -> Run:
        make = partial(product.client, house)
        run = clients(make, threads=threads, seconds=seconds)
        tasks.broker().flushdb()  # nobody takes the nudges here
        return run

    if number % 2:
        second, first = ours(), raw()
        return first, second
    return raw(), ours()


def _progress(pairs: dict[int, list[Pair]]) -> str:
    last = [found[-1] for found in pairs.values()]
    return list_of(f"{ours.rate:.0f}/s of {raw.rate:.0f}/s" for raw, ours in last)


def _line(pairs: dict[int, list[Pair]], options: Options) -> Line:
    ratios = {
        threads: [ours.rate / raw.rate for raw, ours in found]
        for threads, found in pairs.items()
    }
    ours = (sum(ours.count for _, ours in found) for found in pairs.values())
    raw = (sum(raw.count for raw, _ in found) for found in pairs.values())
    return Line(
        "G1 round trip",
        f"{list_of(ratio(found) for found in ratios.values())} x the floor at "
        f"{list_of(THREADS)} clients",
        f">= {BAR}",
        all(median(found) >= BAR for found in ratios.values()),
        f"n = {list_of(ours)} actions, floor {list_of(raw)}, {options.rounds} rounds",
    )
