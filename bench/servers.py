"""The processes of one run: a private PostgreSQL and Valkey, the web and the worker.

Unlike the tests' servers these wait for the disk: PostgreSQL has its default
durability. The web and the worker start as `make up` starts them, but for their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from django.conf import settings
from django.core.management import call_command

from hitl.environment import LOOPBACK
from hitl.local import installation, keys, postgres, valkey
from hitl.local.layout import Layout, build_layout
from hitl.local.process import Child
from world.processes import (
    START_S,
    build_environ,
    build_worker_program,
    create_installation,
    free_port,
    is_ready,
    wait_until,
    watch_worker,
)


@contextmanager
def start_private_servers() -> Iterator[None]:
    """Start both and name them in the environment; stop and remove them afterwards.
    Raises InstallationError."""
    with (
        create_installation("bench", COUNTERSEAL_CALLABLES="bench") as here,
        ExitStack() as stack,
    ):
        (here.state / "static").mkdir()
        password = keys.read_key(here.keys, "database_password")
        stack.callback(postgres.start_server(here, password).stop, within=5)
        stack.callback(valkey.start_server(here).stop, within=5)
        yield


@contextmanager
def start_workers(count: int = 1) -> Iterator[None]:
    """Start so many Celery workers, the first one with the beat, which also know the
    no-op."""
    here = _get_layout()
    with ExitStack() as stack:
        waiting = []
        for number in range(count):
            name = f"worker{number}"
            program = build_worker_program(
                here,
                build_environ(),
                name,
                beat=not number,
                more=("--include", "bench.callables"),
            )
            waiting.append(watch_worker(here, name))
            stack.callback(Child(program).stop, within=5)
        for takes_tasks in waiting:
            wait_until(takes_tasks, START_S)
        yield


@contextmanager
def start_webs(count: int) -> Iterator[list[int]]:
    """Start so many web processes, and yield their ports once all are ready."""
    call_command("collectstatic", interactive=False, verbosity=0)
    with ExitStack() as stack:
        ports = [free_port() for _ in range(count)]
        for port in ports:
            environ = build_environ(PORT=str(port))
            program = installation.build_web_program(_get_layout(), environ)
            stack.callback(Child(program).stop, within=5)
        for port in ports:
            wait_until(partial(is_ready, f"http://{LOOPBACK}:{port}"), START_S)
        yield ports


def _get_layout() -> Layout:
    return build_layout(settings.COUNTERSEAL.state)


def read_server_log() -> bytes:
    """What PostgreSQL has logged in this run."""
    return (_get_layout().logs / "postgres.log").read_bytes()
