"""The product as it really runs, for tests marked `servers`: uvicorn, a Celery worker
with its beat, the broker and PostgreSQL, all on loopback, on this test's database.

    def test_x(live: Stack) -> None:
        live.start_worker()
        httpx2.get(f"{live.base_url}/livez")
        live.kill_worker()      # SIGKILL, to the pool processes too
        live.start_worker()

The web is started once for a run of pytest and lives on between tests; workers are
killed and the broker is emptied after each test.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import redis
from django.conf import settings
from django.db import connection

from hitl.environment import LOOPBACK
from hitl.local import installation
from hitl.local.layout import Layout
from hitl.local.process import Child, Program
from journal.failpoints import FaultAction
from tests.build_cache import build_once

STATIC_SOURCES = ("static/**/*", "hitl/settings.py", "requirements.lock")
START_S = 80.0
PATIENCE_S = 80.0
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.25


@dataclass
class Stack:
    """The processes of one test database."""

    state: Path
    extra: dict[str, str] = field(default_factory=dict)
    web: Child | None = None
    workers: list[Child] = field(default_factory=list)
    app: str = "hitl.celery"  # what a worker is started as
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.port = free_port()

    @property
    def base_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """What a process needs in order to belong to this stack."""
        name = str(connection.settings_dict["NAME"])
        parts = urlsplit(settings.COUNTERSEAL.database_url)
        return {
            **os.environ,
            "STATE": str(self.state),
            "PORT": str(self.port),
            "BASE_URL": self.base_url,
            "DATABASE_URL": parts._replace(path=f"/{name}").geturl(),
            "REDIS_URL": settings.COUNTERSEAL.redis_url,
            "LOG_LEVEL": "INFO",
            "COUNTERSEAL_FAULT": str(self.faults),
            # Most tests run no worker, and that is no standstill to them.
            "STANDSTILL_SECONDS": "86400",
            **self.extra,
        }

    @property
    def faults(self) -> Path:
        return self.state / "faults"

    def arm(
        self, point: str, subject: str = "", action: FaultAction = FaultAction.KILL
    ) -> Path:
        """Whoever passes this point next, about this row, suffers it; the file that
        this returns is gone by then (journal/failpoints.py)."""
        flag = self.faults / (f"{point}@{subject}" if subject else point)
        draft = flag.with_name(f".{flag.name}")
        draft.write_text(action)
        draft.rename(flag)
        return flag

    def disarm(self) -> None:
        for flag in self.faults.iterdir():
            flag.unlink()

    def start_web(self) -> None:
        """Start it unless it runs, and wait until it says that it is ready."""
        if self.web is not None and self.web.exit_code() is None:
            return
        self.collect()
        self.web = Child(installation.build_web_program(self._layout, self.environ))
        wait_until(self._ready, START_S, lambda: self.log("web"))

    def start_worker(self, *, beat: bool = True, processes: int = 2) -> Child:
        """One more worker; returns when it takes tasks."""
        seen = self.log("worker").count(" ready.")
        child = Child(self._worker(beat=beat, processes=processes))
        self.workers.append(child)
        wait_until(
            lambda: self.log("worker").count(" ready.") > seen,
            START_S,
            lambda: self.log("worker"),
        )
        return child

    def kill_worker(self) -> None:
        """SIGKILL to every worker and all its children, in the middle of anything."""
        for child in self.workers:
            child.kill()
        self.workers.clear()

    def kill_web(self) -> None:
        if self.web is not None:
            self.web.kill()
            self.web = None

    def empty_broker(self) -> None:
        with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as client:
            client.flushdb()

    def stop(self) -> None:
        """Everything, at the end of the run."""
        self.kill_worker()
        if self.web is not None:
            self.web.stop(within=5)
            self.web = None

    def log(self, name: str) -> str:
        """What a process has written: `web` or `worker`."""
        file = self._layout.logs / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    @property
    def _layout(self) -> Layout:
        return Layout(self.state, self.state / "run")

    def _worker(self, *, beat: bool, processes: int) -> Program:
        program = installation.build_worker_program(self._layout, self.environ)
        argv = [part for part in program.argv if beat or part != "--beat"]
        argv[argv.index("--concurrency") + 1] = str(processes)
        argv[argv.index("--app") + 1] = self.app
        return Program(
            name="worker",
            argv=argv,
            env=program.env,
            log=program.log,
            stop_signal=program.stop_signal,
            cwd=program.cwd,
        )

    def _ready(self) -> bool:
        assert self.web is not None
        if self.web.exit_code() is not None:
            raise AssertionError(self.log("web"))
        try:
            answer = httpx2.get(f"{self.base_url}/readyz", trust_env=False)
        except httpx2.TransportError:
            return False
        return answer.status_code == 200

    def collect(self) -> None:
        """The files that pages name."""
        if not (self.state / "static").exists():
            kept = build_once("static", STATIC_SOURCES, self._collect_static)
            shutil.copytree(kept, self.state / "static")

    def _collect_static(self, folder: Path) -> None:
        """Collect into STATE/static of a state of its own, which becomes `folder`."""
        with tempfile.TemporaryDirectory() as state:
            environ = {**self.environ, "STATE": state}
            shutil.copytree(self.state / "keys", Path(state, "keys"))
            manage = [sys.executable, "manage.py", "collectstatic", "--noinput"]
            subprocess.run(manage, env=environ, check=True, capture_output=True)
            shutil.move(Path(state, "static"), folder)


def make(state: Path) -> Stack:
    """A stack with the keys of this run: the test and the processes must be able to
    read what the other encrypted."""
    state.mkdir(exist_ok=True)
    (state / "faults").mkdir(exist_ok=True)
    if not (state / "keys").exists():
        shutil.copytree(settings.COUNTERSEAL.state / "keys", state / "keys")
    return Stack(state)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def wait_until(
    true: Callable[[], bool], seconds: float, otherwise: Callable[[], str] = str
) -> None:
    """Wait until the condition holds; else fail with what `otherwise` says. A quiet
    machine may take `seconds`; a busy one is given at least PATIENCE_S. What takes long
    is looked at less often, for each look may cost a request."""
    seconds = max(seconds, PATIENCE_S)
    end = time.monotonic() + seconds
    pause = SHORTEST_PAUSE_S
    while not true():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} s: {otherwise()[-2000:]}")
        time.sleep(pause)
        pause = min(pause * 1.1, LONGEST_PAUSE_S)


def stop_process(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Ask a process to end, and kill it after so many seconds."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.wait()


def list_descendants(ancestor: int) -> Iterator[int]:
    """The processes that this one started, and those that they started."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            # After the name in brackets: state, parent, ...
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == ancestor:
                yield int(folder.name)
                yield from list_descendants(int(folder.name))
