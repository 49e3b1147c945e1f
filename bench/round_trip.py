"""G1: one gated round trip beside the floor, at 1, 4 and 16 clients."""

from __future__ import annotations

from collections import defaultdict
from functools import partial

from . import floor, product, tasks
from .load import Run, run_clients, median
from .report import GoalResult, Options, join_values, format_ratio, print_text
from .seed import Seed

THREADS = (1, 4, 16)
RATE_BAR = 0.45

Pair = tuple[Run, Run]  # the floor's and ours


def measure_round_trips(seed: Seed, options: Options) -> GoalResult:
    """Both in turn, and each round in the other order."""
    pairs: dict[int, list[Pair]] = defaultdict(list)
    for number in range(options.rounds):
        for threads in THREADS:
            pairs[threads].append(_run_both(seed, threads, number, options.seconds))
        print_text(f"G1 round {number + 1}: {_describe_progress(pairs)}")
    return _build_round_trip_result(pairs, options)


def _run_both(seed: Seed, threads: int, number: int, seconds: float) -> Pair:
    def raw() -> Run:
        return run_clients(floor.open_floor_client, threads=threads, seconds=seconds)

    def ours() -> Run:
        make = partial(product.open_product_client, seed)
        run = run_clients(make, threads=threads, seconds=seconds)
        tasks.connect_broker().flushdb()  # nobody takes the nudges here
        return run

    if number % 2:
        second, first = ours(), raw()
        return first, second
    return raw(), ours()


def _describe_progress(pairs: dict[int, list[Pair]]) -> str:
    last = [found[-1] for found in pairs.values()]
    return join_values(f"{ours.rate:.0f}/s of {raw.rate:.0f}/s" for raw, ours in last)


def _build_round_trip_result(
    pairs: dict[int, list[Pair]], options: Options
) -> GoalResult:
    ratios = {
        threads: [ours.rate / raw.rate for raw, ours in found]
        for threads, found in pairs.items()
    }
    ours = (sum(ours.count for _, ours in found) for found in pairs.values())
    raw = (sum(raw.count for raw, _ in found) for found in pairs.values())
    return GoalResult(
        "G1 round trip",
        f"{join_values(format_ratio(found) for found in ratios.values())} x the floor at "
        f"{join_values(THREADS)} clients",
        f">= {RATE_BAR}",
        all(median(found) >= RATE_BAR for found in ratios.values()),
        f"n = {join_values(ours)} actions, floor {join_values(raw)}, {options.rounds} rounds",
    )
