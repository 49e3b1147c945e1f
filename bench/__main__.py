"""Measure the goals: `make bench ARGS="--rounds 3 --seconds 2 --only G1"`.

Every goal is measured beside the floor in one database, one after the other. One line a
goal stands at the end.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import django
from django.core.management import call_command
from django.db import connection
from django.utils.module_loading import import_string

from hitl.local.layout import InstallationError
from tests import prove

from . import servers
from .report import GoalResult, Options, print_text

# Named, not imported: the measurements import models, which settings must precede.
MEASUREMENTS = {
    "G1": "round_trip.measure_round_trips",
    "G2": "round_trip.measure_writes",
    "G3": "execution.measure_execution",
    "G4": "proposals.measure_http_proposals",
    "G5": "live.measure_queue_updates",
    "G8": "races.measure_expiry",
    "G10": "races.measure_simultaneous_decisions",
    "G11": "live.measure_long_poll",
    "G12": "cycles.measure_http_cycles",
    "W": "budgets.measure_page_budgets",
    "G6": "scale.measure_queue_queries",  # last: a million rows would slow the others
    "G7": "scale.measure_whole_pages",
}


def main() -> None:
    options = _parse_options()
    try:
        with servers.start_private_servers():
            django.setup()
            measure_goals(options)
    except InstallationError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit("bench: stopped; nothing was kept")


def _parse_options() -> Options:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, default=[])
    parser.add_argument(
        "--keep", action="store_true", help="write what held to docs/proof.md"
    )
    parser.add_argument(
        "--profile", action="store_true", help="print the cost of an action, no goal"
    )
    given = parser.parse_args()
    only = frozenset(given.only or MEASUREMENTS)
    return Options(given.rounds, given.seconds, only, given.keep, given.profile)


def measure_goals(options: Options) -> None:
    """Seed the database, measure each chosen goal, and print one line a goal."""
    began, version = time.monotonic(), prove.version()
    call_command("migrate", interactive=False, verbosity=0)
    _import("clients.create_floor_tables")()
    seed = _import("seed.seed_database")()
    print_text(_describe_machine())
    if options.profile:
        _import("profile.print_profile")(seed)
        return
    results: list[GoalResult] = []
    for goal, name in MEASUREMENTS.items():
        if goal in options.only:
            measured = _import(name)(seed, options)
            results += measured if isinstance(measured, tuple) else [measured]
    print_text("\nMedians over rounds (lowest-highest where given):")
    for result in results:
        print_text(str(result))
    print_text(f"{time.monotonic() - began:.0f} s")
    if options.keep:
        _keep_results(results, version)


def _import(name: str) -> Callable[..., Any]:
    measure: Callable[..., Any] = import_string(f"bench.{name}")
    return measure


def _keep_results(results: Iterable[GoalResult], version: str) -> None:
    """Write what held, each goal under its own command, so that one goal measured
    again replaces its own line only."""
    for result in results:
        goal, _, rest = str(result).partition(" ")
        if result.held:
            prove.keep(f"make bench, {goal}", [(goal, rest)], version)


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


if __name__ == "__main__":
    main()
