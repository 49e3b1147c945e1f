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
from .report import Line, Options, say
from .seed import House

GOALS: dict[str, Callable[[House, Options], Line | tuple[Line, ...]]] = {
    "G1": round_trip.measure,
    "G2": disk.measure,
    "G3": worker.measure,
    "G4": web.measure,
    "G5": live.measure,
    "G8": expiry.measure,
    "G10": contest.measure,
    "G11": waiting.measure,
    "W": budgets.measure,
    "G6": desk.measure_view,  # last: a million rows would slow the others
    "G7": desk.measure_pages,
}


def run(options: Options) -> None:
    """One line a goal, after all of them are done."""
    began, of = time.monotonic(), prove.version()
    call_command("migrate", interactive=False, verbosity=0)
    floor.create()
    house = seed.house()
    say(_machine())
    found = [
        _lines(measure(house, options))
        for goal, measure in GOALS.items()
        if goal in options.only
    ]
    say("\nMedians over rounds (lowest-highest where given):")
    every = [line for one in found for line in one]
    for line in every:
        say(str(line))
    say(f"{time.monotonic() - began:.0f} s")
    if options.keep:
        _keep(every, of)


def _lines(measured: Line | tuple[Line, ...]) -> tuple[Line, ...]:
    return measured if isinstance(measured, tuple) else (measured,)


def _keep(lines: Iterable[Line], of: str) -> None:
    """What held, each goal under its own command: one is measured again alone."""
    for line in lines:
        goal, _, rest = str(line).partition(" ")
        if line.held:
            prove.keep(f"make bench, {goal}", [(goal, rest)], of)


def _machine() -> str:
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
