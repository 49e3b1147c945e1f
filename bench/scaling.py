"""Two web processes and two workers: an action must cost what it costs with one each.

The cost is the CPU time of every process of the installation, PostgreSQL and the broker
included, and the statements that PostgreSQL received. What the same processes cost
while nothing happens is subtracted.
"""

from __future__ import annotations

import http.client
import os
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from django.db import connections

from hitl.environment import LOOPBACK
from reviews.choices import Verdict
from reviews.people import tokens
from world.processes import wait_until

from . import clients, load, servers
from .execution import UNDONE, clear_messages
from .report import GoalResult, Options, format_ratio, print_text
from .seed import ProposalCalls, Seed, build_headers, build_verdict

COUNTS = (1, 2)  # web processes, and as many workers
COST_BAR = 1.1
_ACTIONS = 60  # for each second of the options
_WARM_UP = 20
_CLIENTS = 4
_PATIENCE_S = 120.0
_TICKS = os.sysconf("SC_CLK_TCK")
_SUCCEEDED = "SELECT count(*) FROM reviews_execution WHERE status = 'succeeded'"
_COUNT_UNDONE = f"SELECT count(*) FROM ({UNDONE}) AS undone"  # noqa: S608 constants
# A line of the server's log that begins a statement.
_STATEMENT = re.compile(rb"LOG:  (?:statement|execute [^:]*):")


@dataclass(frozen=True, slots=True)
class ActionCost:
    """Of one action, by one set of processes."""

    cpu_ms: float
    statements: float


@dataclass(frozen=True)
class ActionDriver:
    """Proposes over HTTP and approves by a reviewer's token; the worker performs."""

    calls: ProposalCalls
    tokens: list[str]

    def run_actions(self, port: int, count: int) -> None:
        """Propose and approve so many, over one kept-alive connection."""
        connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
        send = partial(load.exchange, connection, "POST")
        try:
            for _ in range(count):
                call = self.calls.build_next()
                proposal = send("/api/v1/proposals", call.headers, call.body)
                path, verdict = build_verdict(proposal, Verdict.APPROVE)
                token = self.tokens[call.number % len(self.tokens)]
                send(path, build_headers(token), verdict)
        finally:
            connection.close()


def measure_scaling(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """Measure one of each and two of each in turn, each round in the other order."""
    driver = ActionDriver(
        ProposalCalls(seed.keys),
        [tokens.create_token(person=person, name="bench") for person in seed.reviewers],
    )
    costs: dict[int, list[ActionCost]] = {count: [] for count in COUNTS}
    for number in range(options.rounds):
        for count in COUNTS[:: -1 if number % 2 else 1]:
            costs[count].append(_measure_cost(driver, count, options))
        progress = "; ".join(
            f"{n} of each: {series[-1]}" for n, series in costs.items()
        )
        print_text(f"scaling round {number + 1}: {progress}")
    return _build_cost_results(costs, options)


def _measure_cost(driver: ActionDriver, count: int, options: Options) -> ActionCost:
    clear_messages()
    connections.close_all()
    actions = round(_ACTIONS * options.seconds)
    with (
        servers.start_workers(count),
        servers.start_webs(count) as ports,
        clients.connect_database(autocommit=True) as watch,
    ):
        _run_actions(driver, ports, _WARM_UP, watch)
        cpu = _measure_stretch(driver, ports, actions, watch, _read_cpu_seconds)
        with _log_statements(watch):
            statements = _measure_stretch(
                driver, ports, actions, watch, _count_statements
            )
    return ActionCost(cpu * 1000, statements)


def _measure_stretch(
    driver: ActionDriver,
    ports: list[int],
    actions: int,
    watch: psycopg.Connection[Any],
    read: Any,
) -> float:
    """What `read` counts per action, less what it counts while nothing happens."""
    began, before = time.monotonic(), read()
    _run_actions(driver, ports, actions, watch)
    took, busy = time.monotonic() - began, read() - before
    began, before = time.monotonic(), read()
    time.sleep(took)
    idle = (read() - before) * took / (time.monotonic() - began)
    return float(busy - idle) / actions


def _run_actions(
    driver: ActionDriver,
    ports: list[int],
    actions: int,
    watch: psycopg.Connection[Any],
) -> None:
    """Run the actions by several clients, until the workers have performed them all and
    dealt with their mails."""
    wanted = clients.read_number(watch, _SUCCEEDED) + actions // _CLIENTS * _CLIENTS
    with ThreadPoolExecutor(_CLIENTS) as pool:
        jobs = [
            pool.submit(
                driver.run_actions, ports[number % len(ports)], actions // _CLIENTS
            )
            for number in range(_CLIENTS)
        ]
        for job in jobs:
            job.result()
    wait_until(lambda: clients.read_number(watch, _SUCCEEDED) >= wanted, _PATIENCE_S)
    wait_until(lambda: not clients.read_number(watch, _COUNT_UNDONE), _PATIENCE_S)


def _read_cpu_seconds() -> float:
    """The CPU time of all processes below this one, those that have ended too."""
    parents, ticks = {}, {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = file.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(file.parent.name)
        # proc(5): the parent, then utime, stime, cutime and cstime.
        parents[pid], ticks[pid] = int(fields[1]), sum(map(int, fields[11:15]))
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return sum(ticks[pid] for pid in below - {os.getpid()}) / _TICKS


@contextmanager
def _log_statements(watch: psycopg.Connection[Any]) -> Iterator[None]:
    """Let PostgreSQL log every statement."""
    watch.execute("ALTER SYSTEM SET log_statement = 'all'")
    watch.execute("SELECT pg_reload_conf()")
    try:
        yield
    finally:
        watch.execute("ALTER SYSTEM RESET log_statement")
        watch.execute("SELECT pg_reload_conf()")


def _count_statements() -> int:
    return len(_STATEMENT.findall(servers.read_server_log()))


def _build_cost_results(
    costs: dict[int, list[ActionCost]], options: Options
) -> tuple[GoalResult, ...]:
    single, two = costs.values()
    return (
        _build_cost_result(
            "CPU", "ms", [c.cpu_ms for c in single], [c.cpu_ms for c in two], options
        ),
        _build_cost_result(
            "statements",
            "",
            [c.statements for c in single],
            [c.statements for c in two],
            options,
        ),
    )


def _build_cost_result(
    title: str, unit: str, single: list[float], two: list[float], options: Options
) -> GoalResult:
    ratios = [more / less for less, more in zip(single, two, strict=True)]
    actions = round(_ACTIONS * options.seconds) * options.rounds
    return GoalResult(
        f"scaling: {title} of an action",
        f"{format_ratio(ratios)} x, {median(two):.1f} {unit}".rstrip(),
        f"<= {COST_BAR} x, two of each beside one",
        median(ratios) <= COST_BAR,
        f"n = {actions} actions of each, {options.rounds} rounds",
        floor=f"one of each {median(single):.1f} {unit}".rstrip(),
    )
