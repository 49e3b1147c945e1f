"""Measure the goals: `make bench ARGS="--rounds 3 --seconds 2 --only G1"`.

Every goal is measured beside the floor in one database, one after the other. One table
stands at the end.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import django
from django.core.management import call_command
from django.db import connection
from django.utils.module_loading import import_string

from hitl.local.layout import InstallationError
from tests import prove

from . import servers
from .report import (
    FULL_SECONDS,
    GOALS,
    GoalResult,
    LoadWatch,
    Options,
    format_table,
    print_text,
)

# Named, not imported: the measurements import models, which settings must precede.
MEASUREMENTS = {
    "G1": "round_trip.measure_round_trips",
    "G2": "round_trip.measure_writes",
    "G3": "execution.measure_execution",
    "G4": "proposals.measure_http_proposals",
    "G5": "live.measure_queue_updates",
    "G8": "races.measure_expiry",
    "G9": "log_share.measure_log_share",
    "G10": "races.measure_simultaneous_decisions",
    "G11": "live.measure_long_poll",
    "G12": "cycles.measure_http_cycles",
    "awaithumans": "peers.runners.measure_cycles",
    "W": "budgets.measure_page_budgets",
    "scaling": "scaling.measure_scaling",
    "pressure": "pressure.measure_pressure",
    "G6": "scale.measure_queue_queries",  # last: a million rows would slow the others
    "G7": "scale.measure_whole_pages",
    "H": "homes.measure_homes",  # ends most of the million
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
    parser.add_argument(
        "--peers", action="store_true", help="measure the peers in the same run"
    )
    given = parser.parse_args()
    if given.peers and os.environ.get("CI"):
        parser.error("--peers installs other packages: not in CI")
    if given.keep and given.seconds < FULL_SECONDS:
        parser.error(
            f"--keep needs the full numbers of the goals: --seconds {FULL_SECONDS:g} or"
            " more"
        )
    only = frozenset(given.only)
    return Options(
        rounds=given.rounds,
        seconds=given.seconds,
        only=only,
        keep=given.keep,
        profile=given.profile,
        peers=given.peers,
    )


def measure_goals(options: Options) -> None:
    """Seed the database, measure each chosen goal, and print the table."""
    began, version = time.monotonic(), prove.version()
    call_command("migrate", interactive=False, verbosity=0)
    _import("clients.create_floor_tables")()
    seed = _import("seed.seed_database")()
    gc.freeze()  # as the web and the worker do with what they imported
    print_text(_describe_machine())
    if options.profile:
        _import("profile.print_profile")(seed)
        return
    results, load = _measure_chosen(seed, options)
    chosen = options.only & GOALS.keys() if options.only else GOALS
    print_text("\nMedians over rounds (lowest-highest where given):")
    print_text(format_table(results, [goal for goal in GOALS if goal in chosen]))
    print_text(f"{time.monotonic() - began:.0f} s; {load}")
    if options.keep:
        _keep_results(results, version)


def _measure_chosen(seed: Any, options: Options) -> tuple[list[GoalResult], LoadWatch]:
    results: list[GoalResult] = []
    load = LoadWatch()
    for goal, name in MEASUREMENTS.items():
        if not options.only or goal in options.only:
            print_text(f"{goal}: load {load.look():.1f}")
            measured = _import(name)(seed, options)
            results += measured if isinstance(measured, tuple) else [measured]
    results += _import("peers.runners.compare_cycles")(results)
    load.look()
    return results, load


def _import(name: str) -> Callable[..., Any]:
    measure: Callable[..., Any] = import_string(f"bench.{name}")
    return measure


def _keep_results(results: Iterable[GoalResult], version: str) -> None:
    """Write what held, each goal under its own command, so that one goal measured
    again replaces its own lines only."""
    held: dict[str, list[str]] = defaultdict(list)
    for result in results:
        if result.held:
            held[result.number].append(str(result).partition(" ")[2])
    for goal, lines in held.items():
        prove.keep(f"make bench, {goal}", [(goal, line) for line in lines], version)


def _describe_machine() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name, setting FROM pg_settings WHERE name IN"
            " ('server_version', 'fsync', 'synchronous_commit', 'full_page_writes')"
        )
        settings = dict(cursor.fetchall())
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, load {load:.1f}, Python {platform.python_version()}, "
        f"PostgreSQL {settings.pop('server_version')}, "
        + ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))
    )


if __name__ == "__main__":
    main()
