"""The pressure bar: a transaction stays open while 100,000 further actions pass.

While it is open, PostgreSQL removes no old row version, and the sequencer numbers no
record of the log. G1, G3 and G6 are measured before, meanwhile, and after the
transaction has ended and a vacuum has run. The alarm must say within a minute that the
log has stalled, and close once the log has caught up.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import psycopg
from django.db import connections

from journal import tasks
from world.processes import wait_until

from . import bulk_actions, callables, clients, execution, round_trip, scale, servers
from .bulk_actions import RowWrites
from .report import (
    GoalResult,
    Options,
    format_clients,
    print_text,
)
from .seed import Seed

PASSED, WAITING = 100_000, 1_000
BAR, ALARM_BAR_S = 1.3, 60.0
MOST_ROUNDS = 3  # of each of the three measurements
_PATTERNS = 20  # real actions that the copies are compared with
_PATIENCE_S = 600.0
_REPORT_EVERY = 10_000
_OPEN_ALARMS = (
    "SELECT count(*) FROM reviews_alarm WHERE kind = 'log_stalled' AND status = 'open'"
)
_UNNUMBERED = (
    "SELECT (SELECT count(*) FROM journal_logrecord)"
    " - (SELECT count(*) FROM journal_logposition)"
)
# The requests that waited are decided, and others wait: these stand behind the old
# versions of all that passed.
_SETTLE = (
    "UPDATE reviews_approvalrequest SET status = 'expired', settled_at = now()"
    " WHERE status = 'pending'"
)


# The costs of G1 and G3 as multiples of the floor's, and the milliseconds of G6's
# queries, by what they are of.
Costs = dict[str, float]


def measure_pressure(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure the three goals before, meanwhile and after."""
    count = options.scale(PASSED)
    pattern, real = _perform_patterns(seed)
    _propose_waiting(seed, options)
    before = _measure_costs(seed, options, "before")
    with clients.connect_database(autocommit=True) as watch:
        tasks.sequence()  # what is younger waits for the transaction alone
        with _hold_transaction():
            alarm, copied = _pass_actions(watch, pattern, count)
            _replace_waiting(seed, options)
            meanwhile = _measure_costs(seed, options, "meanwhile")
        records, caught_up = _wait_until_caught_up(watch)
        watch.execute("VACUUM ANALYZE")
    after = _measure_costs(seed, options, "after")
    basis = f"n = {count:,} passed, {min(options.rounds, MOST_ROUNDS)} rounds"
    return (
        *(
            _build_cost_result(name, cost, meanwhile[name], after[name], basis)
            for name, cost in before.items()
        ),
        _build_alarm_result(alarm),
        GoalResult(
            "pressure: the log catches up",
            f"{caught_up:.1f} s, then the alarm closes",
            "",
            None,
            f"n = {records:,} records",
        ),
        GoalResult(
            "pressure: rows of a copy",
            f"{copied}",
            "",
            None,
            f"n = {count:,}",
            floor=f"a real action: {real}",
        ),
    )


def _perform_patterns(seed: Seed) -> tuple[str, RowWrites]:
    """Perform real actions by the worker. Returns the proposal of the last one, and
    what one of them writes."""
    with clients.connect_database(autocommit=True) as watch:
        # The reviewers reach their number of mails an hour.
        _perform_actions(seed)
        before = bulk_actions.count_row_writes(watch)
        proposal = _perform_actions(seed)
        after = bulk_actions.count_row_writes(watch)
    return proposal, after.per_action(before, _PATTERNS)


def _perform_actions(seed: Seed) -> str:
    """Perform some actions, and end all sessions: they add their counts then. Returns
    the proposal of the last one."""
    with execution.start_sampler(seed) as sampler:
        *_, proposal = [sampler.perform_action() for _ in range(_PATTERNS)]
    connections.close_all()
    return proposal


def _propose_waiting(seed: Seed, options: Options) -> None:
    client = clients.ProductClient(seed, 0)
    for _ in range(options.scale(WAITING)):
        client.propose()
    callables.empty_broker()


def _replace_waiting(seed: Seed, options: Options) -> None:
    with clients.connect_database(autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(_SETTLE)
    _propose_waiting(seed, options)


@contextmanager
def _hold_transaction() -> Iterator[None]:
    """A transaction of another program, with an id and a snapshot."""
    with clients.connect_database() as held:
        held.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        held.execute("SELECT pg_current_xact_id(), count(*) FROM journal_logrecord")
        yield
        held.rollback()


@dataclass
class AlarmWatch:
    """Looks for the open alarm. `seconds` is when it was first seen."""

    watch: psycopg.Connection[Any]
    began: float
    seconds: float = math.inf

    def look(self) -> bool:
        if self.seconds == math.inf and clients.read_number(self.watch, _OPEN_ALARMS):
            self.seconds = time.monotonic() - self.began
        return self.seconds < math.inf

    def wait(self) -> None:
        """Wait twice as long as the bar allows, and no longer."""
        while not self.look() and time.monotonic() < self.began + 2 * ALARM_BAR_S:
            time.sleep(0.2)


def _pass_actions(
    watch: psycopg.Connection[Any], proposal: str, count: int
) -> tuple[float, RowWrites]:
    """Write the copies while a web process runs. Returns the seconds from the first of
    them to the alarm, and what one copy writes."""
    pattern = bulk_actions.load_pattern(watch, proposal)
    before = bulk_actions.count_row_writes(watch)
    alarm = AlarmWatch(watch, time.monotonic())
    with servers.start_webs(1):
        with clients.connect_database(autocommit=True) as writer:
            alarm.began = time.monotonic()
            for done in bulk_actions.write_actions(writer, pattern, count):
                alarm.look()
                if not done % _REPORT_EVERY:
                    print_text(f"pressure: {done:,} actions have passed")
        alarm.wait()
    copied = bulk_actions.count_row_writes(watch).per_action(before, count)
    print_text(f"pressure: the alarm came after {alarm.seconds:.0f} s")
    return alarm.seconds, copied


def _wait_until_caught_up(watch: psycopg.Connection[Any]) -> tuple[int, float]:
    """Let a worker number the records and a web process close the alarm. Returns how
    many records waited, and the seconds until none did."""
    records, began = clients.read_number(watch, _UNNUMBERED), time.monotonic()
    callables.empty_broker()
    with servers.start_workers():
        wait_until(lambda: not clients.read_number(watch, _UNNUMBERED), _PATIENCE_S)
        seconds = time.monotonic() - began
        with servers.start_webs(1):
            wait_until(
                lambda: not clients.read_number(watch, _OPEN_ALARMS), _PATIENCE_S
            )
    return records, seconds


def _measure_costs(seed: Seed, options: Options, when: str) -> Costs:
    rounds = replace(options, rounds=min(options.rounds, MOST_ROUNDS))
    costs = {
        f"G1, {format_clients(threads)}": median(_list_costs(seed, threads, rounds))
        for threads in round_trip.THREADS
    }
    runs = execution.run_rounds(seed, rounds)
    for percent in (50, 99):
        costs[f"G3, p{percent}"] = median([lap.over(percent) for lap in runs])
    queue = median([_time_queue() for _ in range(rounds.rounds)])
    costs[f"G6 among {options.scale(WAITING):,}, ms"] = queue * 1000
    listed = ", ".join(f"{name}: {cost:.1f}" for name, cost in costs.items())
    print_text(f"pressure, {when}: {listed}")
    return costs


def _list_costs(seed: Seed, threads: int, options: Options) -> Iterator[float]:
    """The time of an action as a multiple of the floor's, round by round."""
    for number in range(options.rounds):
        raw, ours = round_trip.run_both(seed, threads, number, options.seconds)
        yield raw.rate / ours.rate


def _time_queue() -> float:
    view = scale.time_queries("rita", "open")
    for _ in range(scale.WARM_UP):
        view()
    return median([view() for _ in range(scale.REPEATS)])


def _build_cost_result(
    name: str, before: float, meanwhile: float, after: float, basis: str
) -> GoalResult:
    ratio = meanwhile / before
    return GoalResult(
        f"pressure: {name}",
        f"{ratio:.2f} x; after a vacuum {after / before:.2f} x",
        f"<= {BAR} x its cost before",
        ratio <= BAR,
        basis,
        floor=f"cost before {before:.1f}, meanwhile {meanwhile:.1f}",
    )


def _build_alarm_result(seconds: float) -> GoalResult:
    came = seconds < math.inf
    return GoalResult(
        "pressure: the alarm",
        f"after {seconds:.0f} s" if came else f"none in {2 * ALARM_BAR_S:.0f} s",
        f"<= {ALARM_BAR_S:.0f} s",
        seconds <= ALARM_BAR_S,
        "n = 1",
    )
