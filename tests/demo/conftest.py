from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from demo.store import database

from .store import SECRET, Store

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A fresh store's database."""
    path = tmp_path / "store.sqlite3"
    database.prepare(path)
    return path


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The store as it runs: its own process, on loopback."""
    state, port = tmp_path_factory.mktemp("store"), _free_port()
    # Nothing of Holdpoint's environment: the store must not need it.
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT),
        "STATE": str(state),
        "STORE_PORT": str(port),
        "HOLDPOINT_WEBHOOK_SECRET": SECRET,
    }
    command = [sys.executable, "-m", "demo.store"]
    with subprocess.Popen(command, env=environ, cwd=ROOT) as process:
        try:
            store = Store(f"http://127.0.0.1:{port}", state / "store.sqlite3")
            _wait_for(store, process)
            yield store
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _wait_for(store: Store, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end and process.poll() is None:
        try:
            if httpx2.get(f"{store.url}/livez", trust_env=False).text == "ok":
                return
        except httpx2.TransportError:
            time.sleep(0.05)
    pytest.fail("the store did not start")
