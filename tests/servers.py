"""Loaded before Django's settings (`-p tests.servers`): a private PostgreSQL and Valkey
for every process that runs tests, unless DATABASE_URL and REDIS_URL name others.

Each worker of `-n 2` has its own: the log's sequencer waits for the oldest transaction
of the whole server, so one worker's long test would hold up the other's. Data is
throw-away, so the servers do not wait for the disk.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hitl.local import defaults, keys, layout, postgres, process, valkey

# What the controller filled in itself: a worker fills it in anew.
FILLED = "COUNTERSEAL_TEST_FILLED"
WORKER = "PYTEST_XDIST_WORKER"
stack = ExitStack()
# Where the private PostgreSQL is; None where DATABASE_URL names another server.
private: layout.Layout | None = None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    worker = os.environ.get(WORKER)
    for name in os.environ.pop(FILLED, "").split():
        os.environ.pop(name, None)
    given = set(os.environ)
    here = _prepare(Path(tempfile.mkdtemp(prefix="counterseal-test-")))
    if worker or not getattr(early_config.known_args_namespace, "numprocesses", None):
        gc.disable()  # until all tests are imported, which stay
        _serve(here, given)
    os.environ[FILLED] = " ".join(set(os.environ) - given)
    if worker:
        os.environ["REDIS_URL"] = with_number(os.environ["REDIS_URL"], worker)
    return (yield)


def pytest_collection_finish() -> None:
    """Exclude what was imported from all later collections."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    stack.close()


def with_number(redis_url: str, worker: str) -> str:
    """A database of the broker for each worker of xdist: one worker's messages name
    rows that another's database does not have."""
    number = int(worker.removeprefix("gw")) + 1
    if redis_url.startswith("unix://"):
        return f"{redis_url}?db={number}"
    return f"{redis_url.rstrip('/')}/{number}"


def _prepare(state: Path) -> layout.Layout:
    """The folders and every variable that is not given."""
    stack.callback(shutil.rmtree, state, ignore_errors=True)
    os.environ["STATE"] = str(state)
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ["COUNTERSEAL_CALLABLES"] = "tests"
    keys.create_keys(layout.build_layout(state).keys)  # and say nothing of it
    here = defaults.fill_environment(os.environ)
    (here.state / "static").mkdir()
    layout.create_run_folder(here.run)
    stack.callback(shutil.rmtree, here.run, ignore_errors=True)
    return here


def _serve(here: layout.Layout, given: set[str]) -> None:
    global private
    if "DATABASE_URL" not in given:
        password = keys.read_key(here.keys, "database_password")
        _keep(postgres.start_server(here, password, fast=True), here)
        private = here
    if "REDIS_URL" not in given:
        _keep(valkey.start_server(here), here)


def _keep(child: process.Child, here: layout.Layout) -> None:
    home = here.postgres_data.resolve().parent
    if child.name == "postgres" and home != here.state:
        stack.callback(shutil.rmtree, home, ignore_errors=True)
    stack.callback(child.stop, within=5)
