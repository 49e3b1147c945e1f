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
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.db import connection

from hitl.environment import LOOPBACK
from hitl.local import installation
from hitl.local.layout import Layout
from hitl.local.process import Child, Program
from journal.failpoints import FaultAction
from tests.build_cache import build_once
from world.processes import PATIENCE_S as PATIENCE_S
from world.processes import START_S as START_S
from world.processes import build_worker_program, is_ready, read_log, watch_worker
from world.processes import free_port as free_port
from world.processes import wait_until as wait_until

STATIC_SOURCES = ("static/**/*", "hitl/settings.py", "requirements.lock")


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
        takes_tasks = watch_worker(self._layout)
        child = Child(self._worker(beat=beat, processes=processes))
        self.workers.append(child)
        wait_until(takes_tasks, START_S, lambda: self.log("worker"))
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
        return read_log(self._layout, name)

    @property
    def _layout(self) -> Layout:
        return Layout(self.state, self.state / "run")

    def _worker(self, *, beat: bool, processes: int) -> Program:
        program = build_worker_program(
            self._layout, self.environ, beat=beat, processes=processes
        )
        argv = list(program.argv)
        argv[argv.index("--app") + 1] = self.app
        return replace(program, argv=argv)

    def _ready(self) -> bool:
        assert self.web is not None
        if self.web.exit_code() is not None:
            raise AssertionError(self.log("web"))
        return is_ready(self.base_url)

    def collect(self) -> None:
        """The files that pages name."""
        if not (self.state / "static").exists():
            collected = build_once("static", STATIC_SOURCES, self._collect_static)
            shutil.copytree(collected, self.state / "static")

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
