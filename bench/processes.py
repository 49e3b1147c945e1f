"""The product's own processes for a measurement: web and worker, as `make up` starts
them, but for their number."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

import httpx2
from django.conf import settings
from django.core.management import call_command

from hitl.environment import LOOPBACK
from hitl.local import installation
from hitl.local.layout import Layout, build_layout
from hitl.local.process import Child, Program
from tests.stack import free_port, wait_until

_START_S = 60.0


@contextmanager
def start_worker() -> Iterator[None]:
    """One Celery worker with its beat, which also knows our no-op."""
    here = _get_layout()
    program = installation.build_worker_program(here, _build_environ())
    more = ["--include", "bench.tasks"]
    with _run_program(replace(program, argv=[*program.argv, *more])):
        wait_until(lambda: " ready." in _read_log(here, "worker"), _START_S)
        yield


@contextmanager
def start_webs(count: int) -> Iterator[list[int]]:
    """So many web processes; gives their ports once all are ready."""
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
    return build_layout(settings.HOLDPOINT.state)


def _build_environ() -> dict[str, str]:
    """As in production: a line a request, in JSON."""
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


def _is_ready(port: int) -> bool:
    try:
        answer = httpx2.get(f"http://{LOOPBACK}:{port}/readyz", trust_env=False)
    except httpx2.TransportError:
        return False
    return answer.status_code == 200
