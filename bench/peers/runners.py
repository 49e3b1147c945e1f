"""Runs the peers of `make bench PEERS=1`: each in a virtual environment of its own.

An environment is made when it is first needed, below var/peers, from the pins beside
the script of the peer. LangGraph and DBOS have a database each on the server of the
run; awaithumans has its own SQLite.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.conf import settings

from bench.load import Run, percentile
from bench.report import (
    GoalResult,
    Options,
    format_clients,
    format_ms,
    print_text,
)
from bench.seed import Seed, build_proposal_body
from world.processes import free_port

SCRIPTS = Path(__file__).parent
ROOT = SCRIPTS.parent.parent
ENVIRONMENTS = ROOT / "var" / "peers"
CLIENTS = (1, 4, 16)
CYCLES_BAR = 3.0  # x awaithumans, of G12
_START_S = 120.0  # a stretch may take so much longer than its seconds


@dataclass(frozen=True, slots=True)
class PeerBars:
    """What G1 must reach beside a peer, by the number of clients."""

    title: str
    name: str  # of the script and of its pins
    bars: Mapping[int, float]


ROUND_TRIP_BARS = (
    PeerBars("LangGraph", "langgraph", {1: 1.5, 16: 3.5}),
    PeerBars("DBOS", "dbos", {1: 3.0, 16: 6.0}),
)


@dataclass
class PeerRunner:
    """One peer that is ready to run. `environ` names its database or its port."""

    title: str
    name: str
    environ: Mapping[str, str]
    version: str = ""
    python: Path = field(init=False)

    def __post_init__(self) -> None:
        self.python = prepare_environment(self.name)

    def run(self, *, clients: int, seconds: float) -> Run:
        """Run the script for one stretch. Raises RuntimeError with the last lines of
        what it wrote when it fails."""
        arguments = ["--clients", str(clients), "--seconds", str(seconds)]
        done = subprocess.run(  # noqa: S603
            [str(self.python), "-m", f"bench.peers.{self.name}", *arguments],
            cwd=ROOT,
            env={
                "PATH": os.environ["PATH"],
                "HOME": os.environ["HOME"],
                **self.environ,
            },
            input=json.dumps(build_proposal_body("peer")),
            capture_output=True,
            text=True,
            timeout=seconds + _START_S,
        )
        if done.returncode:
            raise RuntimeError(f"{self.title} failed:\n{done.stderr[-2000:]}")
        output = json.loads(done.stdout)
        self.version = output["version"]
        return Run(output["count"], output["seconds"], output["times"])


def prepare_environment(name: str) -> Path:
    """The interpreter of the peer's environment, which has exactly the packages of its
    pins. Raises CalledProcessError when they cannot be installed."""
    pins, folder = SCRIPTS / f"{name}.requirements.txt", ENVIRONMENTS / name
    python, stamp = folder / "bin" / "python", folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != pins.read_text():
        print_text(f"installing {name} into {folder.relative_to(ROOT)}")
        venv.create(folder, clear=True, with_pip=True, symlinks=True)
        subprocess.run(  # noqa: S603
            [
                str(python),
                "-m",
                "pip",
                "install",
                "-qq",
                "--requirement",
                str(pins),
            ],
            check=True,
            stdout=sys.stderr,
        )
        stamp.write_text(pins.read_text())
    return python


@contextmanager
def start_round_trips() -> Iterator[list[PeerRunner]]:
    """The peers of G1, each with an empty database on the server of the run."""
    runners = []
    for peer in ROUND_TRIP_BARS:
        url = _create_database(f"bench_{peer.name}")
        runners.append(PeerRunner(peer.title, peer.name, {"PEER_DATABASE_URL": url}))
    for runner in runners:  # its tables are created before the first stretch
        runner.run(clients=1, seconds=0.1)
        print_text(f"G1 beside {runner.title} {runner.version}")
    yield runners


def _create_database(name: str) -> str:
    """Create the database, and return its address."""
    url = settings.COUNTERSEAL.database_url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def measure_cycles(seed: Seed, options: Options) -> tuple[GoalResult, ...]:
    """G12's peer: propose, decide and read the outcome over HTTP, in one process."""
    if not options.peers:
        return ()
    runner = PeerRunner("awaithumans", "awaithumans", {"PEER_PORT": str(free_port())})
    runs: dict[int, list[Run]] = {clients: [] for clients in CLIENTS}
    for number in range(options.rounds):
        for clients, series in runs.items():
            series.append(runner.run(clients=clients, seconds=options.seconds))
        rates = " / ".join(f"{series[-1].rate:.0f}/s" for series in runs.values())
        print_text(f"awaithumans round {number + 1}: {rates}")
    return tuple(
        _build_cycles_result(runner, clients, series)
        for clients, series in runs.items()
    )


def _build_cycles_result(
    runner: PeerRunner, clients: int, runs: list[Run]
) -> GoalResult:
    rate = median([run.rate for run in runs])
    times = [median([percentile(run.times, p) for run in runs]) for p in (50, 99)]
    return GoalResult(
        f"awaithumans {runner.version}, {format_clients(clients)}",
        f"{rate:.0f} cycles/s, p50 {format_ms(times[0])}, p99 {format_ms(times[1])}",
        "",
        None,
        f"n = {sum(run.count for run in runs)}, {len(runs)} rounds",
        rates={clients: rate},
    )


def compare_cycles(results: list[GoalResult]) -> list[GoalResult]:
    """One row for each number of clients at which the run has cycles of G12 and of its
    peer."""
    ours, theirs = (
        _collect_rates(results, number) for number in ("G12", "awaithumans")
    )
    return [
        GoalResult(
            f"G12 beside awaithumans, {format_clients(clients)}",
            f"{ours[clients] / theirs[clients]:.2f} x",
            f">= {CYCLES_BAR:g} x",
            ours[clients] >= CYCLES_BAR * theirs[clients],
            "",
            floor=f"peer {theirs[clients]:.0f}/s",
        )
        for clients in sorted(ours.keys() & theirs.keys())
    ]


def _collect_rates(results: list[GoalResult], number: str) -> dict[int, float]:
    return {
        clients: rate
        for result in results
        if result.number == number
        for clients, rate in result.rates.items()
    }
