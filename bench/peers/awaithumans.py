"""awaithumans: create a task, complete it and read it, over HTTP.

Its own server runs in one process on an SQLite file of its own, which is how its
documentation begins. Each client keeps one connection.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.load import LOOPBACK, exchange

from .stretch import StretchOptions, print_stretch, read_options

_START_S = 60.0
_PREFIX = "AWAITHUMANS_"
RESPONSE = {"approved": False}
RESPONSE_SCHEMA = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}},
    "required": ["approved"],
}


@dataclass(frozen=True)
class TaskClient:
    """One kept-alive connection, with the token of the server's administrator."""

    connection: http.client.HTTPConnection
    token: str
    proposal: dict[str, Any]

    def run_cycle(self) -> None:
        """Propose, decide and read the outcome."""
        task = self._exchange("POST", "/api/tasks", self._build_task())
        path = f"/api/tasks/{task['id']}"
        self._exchange("POST", f"{path}/complete", {"response": RESPONSE})
        outcome = self._exchange("GET", path)
        if outcome["response"] != RESPONSE:
            raise LookupError(json.dumps(outcome))

    def _build_task(self) -> dict[str, Any]:
        return {
            "task": "Approve a refund",
            "payload": self.proposal,
            "payload_schema": {"type": "object"},
            "response_schema": RESPONSE_SCHEMA,
            "timeout_seconds": 1800,
            "idempotency_key": uuid.uuid4().hex,
        }

    def _exchange(self, method: str, path: str, sent: Any = None) -> dict[str, Any]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
        }
        answer: dict[str, Any] = exchange(self.connection, method, path, headers, sent)
        return answer


@contextmanager
def start_server(port: int, token: str) -> Iterator[None]:
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "ADMIN_API_TOKEN": token,
            "PAYLOAD_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "DB_PATH": str(Path(folder) / "tasks.db"),
            "PUBLIC_URL": f"http://{LOOPBACK}:{port}",
        }
        command = [str(Path(sys.executable).parent / "awaithumans"), "serve"]
        with subprocess.Popen(  # noqa: S603
            [*command, "--host", LOOPBACK, "--port", str(port), "--log-level=warning"],
            env={
                **os.environ,
                **{_PREFIX + name: text for name, text in settings.items()},
            },
            stdout=sys.stderr,
        ) as server:
            try:
                _wait_until_ready(server, port)
                yield
            finally:
                server.terminate()


def _wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _START_S
    while not _is_ready(port):
        if server.poll() is not None or time.monotonic() > end:
            raise TimeoutError("the server of awaithumans did not start")
        time.sleep(0.1)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=5)
    try:
        connection.request("GET", "/api/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@contextmanager
def open_client(
    options: StretchOptions, port: int, token: str, number: int
) -> Iterator[Callable[[], object]]:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    try:
        yield TaskClient(connection, token, options.proposal).run_cycle
    finally:
        connection.close()


def main() -> None:
    options, port = read_options(__doc__), int(os.environ["PEER_PORT"])
    token = secrets.token_urlsafe(32)
    with start_server(port, token):
        print_stretch(
            "awaithumans", partial(open_client, options, port, token), options
        )


if __name__ == "__main__":
    main()
