"""The processes of one run: a private PostgreSQL and Valkey, the web and the worker.

Unlike the tests' servers these wait for the disk: PostgreSQL has its default
durability, and the folder is one that survives a restart, so no RAM disk. The web and
the worker start as `make up` starts them, but for their number.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx2
from django.conf import settings
from django.core.management import call_command

from hitl.environment import LOOPBACK
from hitl.local import defaults, installation, keys, layout, postgres, valkey
from hitl.local.layout import Layout, build_layout
from hitl.local.process import Child, Program
from tests.stack import free_port, wait_until

DISK = "/var/tmp"  # noqa: S108 mkdtemp makes the folder, for us alone
# Whoever has set these means another installation.
OTHERS = ("DATABASE_URL", "REDIS_URL", "BASE_URL", "PORT", "STORE_PORT")


@contextmanager
def start_private_servers() -> Iterator[Layout]:
    """Start both and name them in the environment; stop and remove them afterwards.

    *Raises* InstallationError.
    """
    with ExitStack() as stack:
        here = stack.enter_context(
            create_installation("bench", COUNTERSEAL_CALLABLES="bench")
        )
        (here.state / "static").mkdir()
        password = keys.read_key(here.keys, "database_password")
        stack.callback(postgres.start_server(here, password).stop, within=5)
        stack.callback(valkey.start_server(here).stop, within=5)
        yield here


@contextmanager
def create_installation(name: str, **more: str) -> Iterator[Layout]:
    """The folders of one installation, named in the environment with `more`; removed
    afterwards, when its servers must have been stopped. *Raises* InstallationError."""
    with ExitStack() as stack:
        state = Path(tempfile.mkdtemp(prefix=f"counterseal-{name}-", dir=DISK))
        stack.callback(shutil.rmtree, state, ignore_errors=True)
        here = _fill_environment(state, more)
        layout.create_run_folder(here.run)
        stack.callback(shutil.rmtree, here.run, ignore_errors=True)
        stack.callback(_remove_data, here)
        yield here


def _fill_environment(state: Path, more: Mapping[str, str]) -> Layout:
    for name in OTHERS:
        os.environ.pop(name, None)
    os.environ |= {
        "STATE": str(state),
        "DEPLOYMENT": "local",
        "LOG_LEVEL": "WARNING",
        "DJANGO_SETTINGS_MODULE": "hitl.settings",
        **more,
    }
    return defaults.fill_environment(os.environ)


def _remove_data(here: Layout) -> None:
    """PostgreSQL has a home of its own where it runs as somebody else."""
    home = here.postgres_data.resolve().parent
    if home != here.state:
        shutil.rmtree(home, ignore_errors=True)


_START_S = 60.0
_READY = " ready."  # in the line that a worker logs when it serves its queues


@contextmanager
def start_worker() -> Iterator[None]:
    """Start one Celery worker with its beat, which also knows the no-op."""
    with start_workers(1):
        yield


@contextmanager
def start_workers(count: int) -> Iterator[None]:
    """Start so many Celery workers, the first one with the beat."""
    here = _get_layout()
    with ExitStack() as stack:
        waiting = [
            _start_worker(stack, here, f"worker{number}", beat=not number)
            for number in range(count)
        ]
        for is_ready in waiting:
            wait_until(is_ready, _START_S)
        yield


def _start_worker(
    stack: ExitStack, here: Layout, name: str, *, beat: bool
) -> Callable[[], bool]:
    """Start a worker, and return whether it has said since then that it is ready."""
    program = installation.build_worker_program(here, _build_environ())
    argv = [one for one in program.argv if beat or one != "--beat"]
    argv += ["--include", "bench.callables", "--hostname", f"{name}@%h"]
    before = _read_log(here, name).count(_READY)
    log = here.logs / f"{name}.log"
    stack.enter_context(_run_program(replace(program, name=name, argv=argv, log=log)))
    return lambda: _read_log(here, name).count(_READY) > before


@contextmanager
def start_webs(count: int) -> Iterator[list[int]]:
    """Start so many web processes, and yield their ports once all are ready."""
    here = _get_layout()
    call_command("collectstatic", interactive=False, verbosity=0)
    with ExitStack() as stack:
        ports = [free_port() for _ in range(count)]
        for port in ports:
            program = installation.build_web_program(
                here, _build_environ() | {"PORT": str(port)}
            )
            stack.enter_context(_run_program(program))
        for port in ports:
            wait_until(partial(_is_ready, port), _START_S)
        yield ports


def _get_layout() -> Layout:
    return build_layout(settings.COUNTERSEAL.state)


def _build_environ() -> dict[str, str]:
    """The environment as in production: one log line a request, in JSON."""
    return {**os.environ, "LOG_LEVEL": "INFO", "LOG_FORMAT": "json"}


@contextmanager
def _run_program(program: Program) -> Iterator[Child]:
    child = Child(program)
    try:
        yield child
    finally:
        child.stop(within=5)


def _read_log(here: Layout, name: str) -> str:
    file = here.logs / f"{name}.log"
    return file.read_text(errors="replace") if file.exists() else ""


def read_server_log() -> bytes:
    """What PostgreSQL has logged in this run."""
    return (_get_layout().logs / "postgres.log").read_bytes()


def _is_ready(port: int) -> bool:
    try:
        answer = httpx2.get(f"http://{LOOPBACK}:{port}/readyz", trust_env=False)
    except httpx2.TransportError:
        return False
    return answer.status_code == 200
