"""The store as it runs, in a process of its own, and calls that are signed like the
gate's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook

from demo.store import database
from tests.guards import ROOT
from tests.stack import free_port, wait_until

SECRET = "whsec_bm9ydGhnYXRlLW5vcnRoZ2F0ZS1ub3J0aGdhdGU="


@dataclass(frozen=True)
class Store:
    url: str

    def effect(self, tool: str, args: Mapping[str, Any], key: str) -> Any:
        """The store's answer to a signed effect."""
        body = {"tool": tool, "args": args, "idempotency_key": key}
        return self.post(f"/effects/{tool}", body).raise_for_status().json()

    def post(self, path: str, body: Mapping[str, Any]) -> httpx2.Response:
        """A signed post."""
        text = json.dumps(body)
        return self.post_raw(path, text, signed(text))

    def post_raw(
        self, path: str, text: str, headers: Mapping[str, str]
    ) -> httpx2.Response:
        return httpx2.post(
            self.url + path, content=text, headers=dict(headers), trust_env=False
        )

    def page(self, path: str) -> httpx2.Response:
        return httpx2.get(self.url + path, trust_env=False)

    def is_up(self) -> bool:
        try:
            return self.page("/livez").text == "ok"
        except httpx2.TransportError:
            return False


def signed(
    text: str, *, secret: str = SECRET, age: timedelta = timedelta(0)
) -> dict[str, str]:
    """The headers of Standard Webhooks for this text."""
    at, number = datetime.now(UTC) - age, f"m_{uuid.uuid4().hex}"
    return {
        "content-type": "application/json",
        "webhook-id": number,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(number, at, text),
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A fresh store's database."""
    path = tmp_path / "store.sqlite3"
    database.prepare(path)
    return path


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The store's process. It gets nothing of Counterseal's environment."""
    port = free_port()
    environ = {
        "PATH": os.environ["PATH"],
        "STATE": str(tmp_path_factory.mktemp("store")),
        "STORE_PORT": str(port),
        "COUNTERSEAL_WEBHOOK_SECRET": SECRET,
    }
    command = [sys.executable, "-m", "demo.store"]
    with subprocess.Popen(command, env=environ, cwd=ROOT) as process:
        try:
            store = Store(f"http://127.0.0.1:{port}")
            wait_until(store.is_up, 30)
            yield store
        finally:
            process.terminate()
