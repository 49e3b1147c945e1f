"""Loaded before Django's settings (`-p tests.servers`): a private PostgreSQL and Valkey
for one run of pytest, unless DATABASE_URL and REDIS_URL name others.

The controller starts them; the workers of `-n 2` find them in the environment. Data
is throw-away, so the server does not wait for the disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hitl.local import defaults, keys, layout, postgres, process, valkey

STARTED = "HOLDPOINT_TEST_STATE"
WORKER = "PYTEST_XDIST_WORKER"
stack = ExitStack()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, None, None]:
    if STARTED not in os.environ:
        _start(Path(tempfile.mkdtemp(prefix="holdpoint-test-")))
    if worker := os.environ.get(WORKER):
        os.environ["REDIS_URL"] = with_number(os.environ["REDIS_URL"], worker)
    return (yield)


def pytest_unconfigure() -> None:
    stack.close()


def with_number(redis_url: str, worker: str) -> str:
    """A database of the broker for each worker of xdist: one worker's messages name
    rows that another's database does not have."""
    number = int(worker.removeprefix("gw")) + 1
    if redis_url.startswith("unix://"):
        return f"{redis_url}?db={number}"
    return f"{redis_url.rstrip('/')}/{number}"


def _start(state: Path) -> None:
    stack.callback(shutil.rmtree, state, ignore_errors=True)
    os.environ[STARTED] = os.environ["STATE"] = str(state)
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    given = {name: os.environ.get(name) for name in ("DATABASE_URL", "REDIS_URL")}
    here = defaults.fill(os.environ)
    (here.state / "static").mkdir()
    layout.make_run(here.run)
    stack.callback(shutil.rmtree, here.run, ignore_errors=True)
    if not given["DATABASE_URL"]:
        password = keys.read(here.keys, "database_password")
        _keep(postgres.start(here, password, fast=True), here)
    if not given["REDIS_URL"]:
        _keep(valkey.start(here), here)


def _keep(child: process.Child, here: layout.Layout) -> None:
    home = here.postgres_data.resolve().parent
    if child.name == "postgres" and home != here.state:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
    stack.callback(child.stop, within=5)
