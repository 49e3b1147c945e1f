"""The gate's own processes: a private installation, web processes and workers, started
as `make up` starts them, but for their number and their names."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import httpx2

from hitl.environment import LOOPBACK, ROOT
from hitl.local import defaults, installation, layout
from hitl.local.layout import Layout
from hitl.local.process import Program

from .services import SECRET

DISK = "/var/tmp"  # noqa: S108 mkdtemp makes the folder, for us alone
# Whoever has set these means another installation.
OTHERS = ("DATABASE_URL", "REDIS_URL", "BASE_URL", "PORT", "STORE_PORT")
START_S = 80.0
PATIENCE_S = 80.0
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.25
READY = " ready."  # in the line that a worker logs when it serves its queues


@contextmanager
def create_installation(name: str, **variables: str) -> Iterator[Layout]:
    """The folders of one installation, named in the environment with `variables`;
    removed afterwards, when its servers must have been stopped. They survive a restart,
    so they are on no RAM disk. Raises InstallationError."""
    with ExitStack() as stack:
        state = Path(tempfile.mkdtemp(prefix=f"counterseal-{name}-", dir=DISK))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        here = _fill_environment(state, variables)
        layout.create_run_folder(here.run)
        stack.callback(shutil.rmtree, here.run, ignore_errors=True)
        stack.callback(_remove_data, here)
        yield here


def _fill_environment(state: Path, variables: Mapping[str, str]) -> Layout:
    for name in OTHERS:
        os.environ.pop(name, None)
    os.environ |= {
        "STATE": str(state),
        "DEPLOYMENT": "local",
        "LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "hitl.settings",
        **variables,
    }
    return defaults.fill_environment(os.environ)


def _remove_data(here: Layout) -> None:
    """PostgreSQL has a home of its own where it runs as somebody else."""
    home = here.postgres_data.resolve().parent
    if home != here.state:
        shutil.rmtree(home, ignore_errors=True)


def build_environ(**variables: str) -> dict[str, str]:
    """The environment as in production: one log line a request, in JSON."""
    return {**os.environ, "LOG_LEVEL": "INFO", "LOG_FORMAT": "json", **variables}


def build_worker_program(
    here: Layout,
    environ: Mapping[str, str],
    name: str = "worker",
    *,
    beat: bool = True,
    processes: int = installation.WORKER_PROCESSES,
    more: Sequence[str] = (),
) -> Program:
    """One Celery worker, with the beat or without it."""
    program = installation.build_worker_program(here, environ)
    argv = [part for part in program.argv if beat or part != "--beat"]
    argv[argv.index("--concurrency") + 1] = str(processes)
    if name != "worker":
        argv += ["--hostname", f"{name}@%h"]
    log = here.logs / f"{name}.log"
    return replace(program, name=name, argv=[*argv, *more], log=log)


def build_service_program(argv: Sequence[str], secret: str, log: Path) -> Program:
    """A service of somebody else: a module, its arguments, and the gate's secret."""
    return Program(
        name=log.stem,
        argv=[sys.executable, "-m", *argv],
        env={**os.environ, SECRET: secret},
        log=log,
        cwd=ROOT,
    )


def read_log(here: Layout, name: str) -> str:
    """What a process has written."""
    file = here.logs / f"{name}.log"
    return file.read_text(errors="replace") if file.exists() else ""


def watch_worker(here: Layout, name: str = "worker") -> Callable[[], bool]:
    """Whether a worker has said since this call that it takes tasks."""
    before = read_log(here, name).count(READY)
    return lambda: read_log(here, name).count(READY) > before


def is_ready(address: str) -> bool:
    """Whether the web process at this address can work."""
    try:
        answer = httpx2.get(f"{address}/readyz", trust_env=False)
    except httpx2.TransportError:
        return False
    return answer.status_code == 200


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
