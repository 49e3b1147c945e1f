"""G9: what the append to the log adds to a transaction.

Each operation runs with its append and without it, in turn. The operations before it
always append, because an execution is compared with the log. The time is that of the
whole operation: building the records, inserting them, and the commit.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any
from unittest import mock

from journal import log

from . import callables
from .clients import ProductClient
from .report import (
    GoalResult,
    Options,
    format_ms,
    format_ratio,
    join_values,
    print_text,
)
from .seed import Seed

SHARE_BAR = 1.10
_SAMPLES = 40  # of each operation, for each second of the options
_WARM_UP = 5
OPERATIONS = ("propose", "decide", "perform")


@dataclass
class OperationTimes:
    """Seconds of one operation with its append and without it, in one round."""

    whole: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return median(self.whole) / median(self.bare)


Round = dict[str, OperationTimes]


def measure_log_share(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure the three operations in turn, by one client."""
    client = ProductClient(seed, 0)
    rounds: list[Round] = []
    _measure_round(client, _WARM_UP)
    for number in range(options.rounds):
        rounds.append(_measure_round(client, round(_SAMPLES * options.seconds)))
        ratios = (f"{name} {rounds[-1][name].ratio:.2f} x" for name in OPERATIONS)
        print_text(f"G9 round {number + 1}: {join_values(ratios)}")
        callables.empty_broker()
    return (
        _build_missing_verifier_result(),
        *(_build_share_result(name, rounds) for name in OPERATIONS),
    )


def _measure_round(client: ProductClient, samples: int) -> Round:
    times = {name: OperationTimes() for name in OPERATIONS}
    for _ in range(samples):
        # In a new order each time: no operation always follows the same one.
        for bare in random.sample([*OPERATIONS, ""], len(OPERATIONS) + 1):
            _run_action(client, times, bare)
    return times


def _run_action(client: ProductClient, times: Round, bare: str) -> None:
    """One action up to its operation without the append; `bare` is empty for a whole
    one."""
    result: Any = None
    for name, step in _list_steps(client):
        with _leave_out_append() if name == bare else nullcontext():
            began = time.perf_counter()
            result = step(result)
            took = time.perf_counter() - began
        if name == bare:
            times[name].bare.append(took)
            return
        if not bare:
            times[name].whole.append(took)


def _list_steps(client: ProductClient) -> list[tuple[str, Callable[[Any], Any]]]:
    """Each operation takes what the one before it returned."""
    return [
        ("propose", lambda _: client.propose()),
        ("decide", client.decide),
        ("perform", lambda request: client.perform(request.proposal_id)),
    ]


@contextmanager
def _leave_out_append() -> Iterator[None]:
    with mock.patch.object(log, "append_many", return_value=None):
        yield


def _build_missing_verifier_result() -> GoalResult:
    return GoalResult(
        "G9 verify the log",
        "not measured: this release has no verifier",
        ">= 50,000 records/s",
        None,
        "",
    )


def _build_share_result(name: str, rounds: list[Round]) -> GoalResult:
    ratios = [times[name].ratio for times in rounds]
    whole = median([median(times[name].whole) for times in rounds])
    bare = median([median(times[name].bare) for times in rounds])
    return GoalResult(
        f"G9 append, {name}",
        f"{format_ratio(ratios)} x, {format_ms(whole)}",
        f"<= {SHARE_BAR} x the same without it",
        median(ratios) <= SHARE_BAR,
        f"n = {sum(len(times[name].whole) for times in rounds)} of each,"
        f" {len(rounds)} rounds",
        floor=f"without it {format_ms(bare)}",
    )
