"""Prepare the gate and the floor in one database, measure what was asked for, print."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterable

from django.core.management import call_command
from django.db import connection

from tests import prove

from . import (
    budgets,
    contest,
    desk,
    disk,
    expiry,
    floor,
    live,
    round_trip,
    seed,
    waiting,
    web,
    worker,
)
from .report import GoalResult, Options, print_text
from .seed import Seed

GOALS: dict[str, Callable[[Seed, Options], GoalResult | tuple[GoalResult, ...]]] = {
    "G1": round_trip.measure_round_trips,
    "G2": disk.measure_writes,
    "G3": worker.measure_execution,
    "G4": web.measure_http_proposals,
    "G5": live.measure_queue_updates,
    "G8": expiry.measure_expiry,
    "G10": contest.measure_simultaneous_decisions,
    "G11": waiting.measure_long_poll,
    "W": budgets.measure_page_budgets,
    "G6": desk.measure_queue_queries,  # last: a million rows would slow the others
    "G7": desk.measure_whole_pages,
}


def measure_goals(options: Options) -> None:
    """One line a goal, after all of them are done."""
    began, of = time.monotonic(), prove.version()
    call_command("migrate", interactive=False, verbosity=0)
    floor.create_floor_tables()
    seed = seed.seed_database()
    print_text(_describe_machine())
    found = [
        _list_results(measure(seed, options))
        for goal, measure in GOALS.items()
        if goal in options.only
    ]
    print_text("\nMedians over rounds (lowest-highest where given):")
    every = [line for one in found for line in one]
    for line in every:
        print_text(str(line))
    print_text(f"{time.monotonic() - began:.0f} s")
    if options.keep:
        _keep_results(every, of)


def _list_results(
    measured: GoalResult | tuple[GoalResult, ...],
) -> tuple[GoalResult, ...]:
    return measured if isinstance(measured, tuple) else (measured,)


def _keep_results(lines: Iterable[GoalResult], of: str) -> None:
    """What held, each goal under its own command: one is measured again alone."""
    for line in lines:
        goal, _, rest = str(line).partition(" ")
        if line.held:
            prove.keep(f"make bench, {goal}", [(goal, rest)], of)


def _describe_machine() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN"
            " ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes')"
        )
        found = dict(cursor.fetchall())
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}, "
        f"PostgreSQL {found.pop('server_version')}, "
        + ", ".join(f"{name} {value}" for name, value in sorted(found.items()))
    )
