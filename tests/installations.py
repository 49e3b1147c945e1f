"""Private installations for tests of `counterseal up`: started, and from nothing or
from one that ran before."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests import schema_template, stack
from tests.build_cache import build_once
from tests.guards import ROOT
from tests.stack import free_port, wait_until

SOURCES = (
    *schema_template.SOURCES,
    *stack.STATIC_SOURCES,
    "demo/*.py",
    "demo/policy.yaml",
    "world/*.py",
    "hitl/local/*.py",
)
OF_ONE_RUN = ("logs", "run", "up.lock")


@dataclass
class Up:
    """One run of `counterseal up`."""

    process: subprocess.Popen[bytes]
    port: int
    output: Path

    @property
    def said(self) -> str:
        return self.output.read_text()

    @property
    def ready(self) -> bool:
        assert self.process.poll() is None, self.said
        return "is running at" in self.said

    def stop(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        assert self.process.wait(60) == 0, self.said


def environ(state: Path, port: int, **changes: str) -> dict[str, str]:
    kept = {"PATH": os.environ["PATH"], "HOME": str(state.parent)}
    own = {"STATE": str(state), "PORT": str(port), "RILEY": "0", "HISTORY": "0"}
    return kept | own | changes


@contextmanager
def up(state: Path, port: int, *, demo: bool = True, **changes: str) -> Iterator[Up]:
    output = state.parent / f"up-{port}.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "up", *(["--demo"] if demo else [])],
            cwd=ROOT,
            env=environ(state, port, **changes),
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    running = Up(process, port, output)
    try:
        wait_until(lambda: running.ready, 300, lambda: running.said)
        yield running
    finally:
        process.kill()
        process.wait()


def copy_installation(state: Path) -> None:
    """Make `state` the STATE of an installation that ran once and was stopped. Its next
    start finds the keys, the migrated database, the static files and the demo's people,
    which take fifteen CPU-seconds to make. Where the data of PostgreSQL cannot be
    inside STATE, the start begins with nothing.
    """
    kept = build_once("installation", SOURCES, _install)
    if not (kept / "postgres").is_symlink():
        shutil.copytree(kept, state, ignore=shutil.ignore_patterns(*OF_ONE_RUN))


def _install(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as parent:
        state = Path(parent, "state")
        with up(state, free_port()) as running:
            running.stop(signal.SIGTERM)
        # On a slow machine a killed server's own children go on for a moment.
        wait_until(lambda: not _list_users(state), 60)
        shutil.copytree(state, folder, symlinks=True)


def _list_users(folder: Path) -> list[Path]:
    """The processes that work inside this folder."""
    users = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):
            if entry.readlink().is_relative_to(folder):
                users.append(entry.parent)
    return users
