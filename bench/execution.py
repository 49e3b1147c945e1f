"""G3: the time from an approval to the recorded effect, through Celery and the broker.

Beside it stand a raw decision, a raw hop of a message and a raw effect.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psycopg
from celery import current_app

from journal import notify

from . import callables, clients, servers
from .clients import FloorClient
from .load import percentile
from .report import GoalResult, Options, format_ms, format_ratio, print_text
from .seed import Seed

P50_BAR, P99_BAR = 1.5, 3.0
_SAMPLES = 50  # for each second of the options: one of both takes about 20 ms
_PATIENCE_S = 20.0
_DONE = (
    "SELECT 1 FROM reviews_execution WHERE proposal_id = %s AND status = 'succeeded'"
)
_KEPT = "UPDATE journal_outboxmessage SET done_at = now() WHERE done_at IS NULL"
# Topics of messages that the worker has yet to deal with. A mail that is gathered until
# later, such as a reviewer's digest once the hour's mails are used up, is promised for
# that later time and never taken up before it.
UNDONE = (
    "SELECT topic FROM journal_outboxmessage WHERE done_at IS NULL"
    " AND NOT (attempts = 0 AND held_until IS NOT NULL AND held_until > now())"
)


@dataclass(slots=True)
class ExecutionRound:
    """Times in seconds: the product's, and for each sample the sum of the raw steps."""

    ours: list[float] = field(default_factory=list)
    raw: list[float] = field(default_factory=list)

    def over(self, percent: float) -> float:
        return percentile(self.ours, percent) / percentile(self.raw, percent)

    def __str__(self) -> str:
        ours, raw = (
            [format_ms(percentile(times, p)) for p in (50, 99)]
            for times in (self.ours, self.raw)
        )
        return f"p50 {ours[0]} of {raw[0]}, p99 {ours[1]} of {raw[1]}"


@dataclass(frozen=True, slots=True)
class Sampler:
    """A client of the product, one of the floor, and a connection that listens."""

    client: clients.ProductClient
    floor: FloorClient
    listener: psycopg.Connection[Any]

    def sample(self, into: ExecutionRound) -> None:
        """Measure one of each while the worker has nothing else to do."""
        stored = self.client.propose()
        self._wait_until_idle()
        into.ours.append(self._ours(stored))
        self._wait_until_idle()
        into.raw.append(self._raw())

    def perform_action(self) -> str:
        """Let the worker finish one action, its mails too; return its proposal."""
        stored = self.client.propose()
        self._wait_until_idle()
        self._ours(stored)
        self._wait_until_idle()
        return str(stored.proposal)

    def _ours(self, stored: Any) -> float:
        began = time.monotonic()
        self.client.decide(stored)
        for notice in self.listener.notifies(timeout=_PATIENCE_S):
            ended = time.monotonic()
            if notice.payload == stored.proposal and self._done(stored.proposal):
                return ended - began
        raise TimeoutError("the worker did not execute it")

    def _done(self, proposal: str) -> bool:
        row = self.floor.connection.execute(_DONE, [proposal]).fetchone()
        self.floor.connection.commit()
        return row is not None

    def _raw(self) -> float:
        asked = self.floor.propose()
        began = time.monotonic()
        self.floor.decide(asked)
        decided = time.monotonic()
        hopped = _time_hop()
        effect = time.monotonic()
        self.floor.perform(asked)
        return (decided - began) + hopped + (time.monotonic() - effect)

    def _wait_until_idle(self) -> None:
        """Wait until the worker has dealt with every message, so that the mails of one
        sample do not delay the next."""
        end = time.monotonic() + _PATIENCE_S
        while undone := self._undone():
            if time.monotonic() > end:
                raise TimeoutError(f"the worker does not keep up: {sorted(undone)}")
            time.sleep(0.002)

    def _undone(self) -> set[str]:
        rows = self.floor.connection.execute(UNDONE).fetchall()
        self.floor.connection.commit()
        return {topic for (topic,) in rows}


def _time_hop() -> float:
    """Seconds from sending a no-op to its first line in the worker."""
    began = time.monotonic()
    current_app.send_task("bench.callables.hop", retry=False, ignore_result=True)
    item: Any = callables.connect_broker().blpop(
        [callables.HOP], timeout=int(_PATIENCE_S)
    )
    if item is None:
        raise TimeoutError("the no-op did not arrive")
    return float(item[1]) - began


def measure_execution(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure the product and the raw steps in turn, sample by sample."""
    rounds = run_rounds(seed, options)
    return tuple(
        _build_percentile_result(rounds, percent, bar, options)
        for percent, bar in ((50, P50_BAR), (99, P99_BAR))
    )


def run_rounds(seed: Seed, options: Options) -> list[ExecutionRound]:
    rounds: list[ExecutionRound] = []
    with start_sampler(seed) as sampler:
        for _ in range(5):
            sampler.sample(ExecutionRound())
        for number in range(options.rounds):
            rounds.append(ExecutionRound())
            for _ in range(round(_SAMPLES * options.seconds)):
                sampler.sample(rounds[-1])
            print_text(f"G3 round {number + 1}: {rounds[-1]}")
    return rounds


@contextmanager
def start_sampler(seed: Seed) -> Iterator[Sampler]:
    """Start a worker that has nothing else to do, and a sampler beside it."""
    clear_messages()
    with servers.start_workers(), _open_sampler(seed) as sampler:
        yield sampler


def clear_messages() -> None:
    """Drop messages of other measurements, which the worker would take up."""
    callables.empty_broker()
    with clients.connect_database() as connection:
        connection.execute(_KEPT)


@contextmanager
def _open_sampler(seed: Seed) -> Iterator[Sampler]:
    with (
        clients.connect_database() as raw,
        clients.connect_database(autocommit=True) as listener,
    ):
        listener.execute(f"LISTEN {notify.CHANNEL}")
        yield Sampler(clients.ProductClient(seed, 0), FloorClient(raw), listener)


def _build_percentile_result(
    rounds: list[ExecutionRound], percent: int, bar: float, options: Options
) -> GoalResult:
    ratios = [lap.over(percent) for lap in rounds]
    ours = format_ms(median([percentile(lap.ours, percent) for lap in rounds]))
    raw = format_ms(median([percentile(lap.raw, percent) for lap in rounds]))
    return GoalResult(
        f"G3 approve -> executed, p{percent}",
        f"{format_ratio(ratios)} x, {ours}",
        f"<= {bar:g} x",
        median(ratios) <= bar,
        f"n = {sum(len(lap.ours) for lap in rounds)} of each, {options.rounds} rounds",
        floor=f"raw decide + hop + effect {raw}",
    )
