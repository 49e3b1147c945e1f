"""`make bench ARGS="--rounds 3 --seconds 2 --only G1"`."""

from __future__ import annotations

import argparse
import importlib
import sys

import django

from hitl.local.layout import InstallationError

from . import servers
from .report import Options

GOALS = ("G1", "G2", "G3", "G4", "G5", "G8", "G10", "G11", "W", "G6", "G7")


def main() -> None:
    options = _options()
    try:
        with servers.start_private_servers():
            django.setup()
            # Only now: the goals import models.
            importlib.import_module("bench.goals").run(options)
    except InstallationError as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit("bench: stopped; nothing was kept")


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--only", action="append", choices=GOALS, default=[])
    parser.add_argument("--keep", action="store_true", help="what held, for good")
    given = parser.parse_args()
    only = frozenset(given.only or GOALS)
    return Options(given.rounds, given.seconds, only, given.keep)


if __name__ == "__main__":
    main()
