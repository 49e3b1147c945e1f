"""What the scripts of the peers share: their options, and their answer as JSON.

It runs in the environment of a peer, which has neither Django nor Counterseal's
packages.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from bench.load import MakeClient, run_clients


@dataclass(frozen=True, slots=True)
class StretchOptions:
    """One stretch of a peer. `seconds` is its length, `proposal` the body that
    Counterseal gets in the same run."""

    clients: int
    seconds: float
    proposal: dict[str, Any]


def read_options(description: str | None) -> StretchOptions:
    """The options of the command line, and the proposal as JSON from standard input."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    given = parser.parse_args()
    return StretchOptions(given.clients, given.seconds, json.load(sys.stdin))


def print_stretch(package: str, make: MakeClient, options: StretchOptions) -> None:
    """Run the clients and print what they did: the number of actions, the seconds of
    the whole stretch and of each action, and the version of the peer."""
    run = run_clients(make, threads=options.clients, seconds=options.seconds)
    json.dump({"version": metadata.version(package), **asdict(run)}, sys.stdout)
