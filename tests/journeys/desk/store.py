"""The demo's store as it really runs: where the effects of the journeys land."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from demo.store import database
from hitl.environment import LOOPBACK
from hitl.local import programs
from hitl.local.process import Child
from tests.stack import Stack, free_port, wait_until

START_S = 30


@dataclass
class Store:
    """The store's process and its own database."""

    url: str
    file: Path
    child: Child

    def reset(self) -> None:
        """As on its first day."""
        for file in self.file.parent.glob(f"{self.file.name}*"):
            file.unlink()
        database.prepare(self.file)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Everything in one of its tables, oldest first."""
        with closing(sqlite3.connect(self.file)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(f"SELECT * FROM {table}")]

    def change(self, statement: str, *values: Any) -> None:
        """Something happens in the store that nobody proposed."""
        with closing(sqlite3.connect(self.file)) as db, db:
            db.execute(statement, values)


def start(live: Stack) -> Store:
    """A store for this stack; it answers when this returns."""
    state, port = live.state / "store", free_port()
    state.mkdir(exist_ok=True)
    environ = {**live.environ, "STATE": str(state), "STORE_PORT": str(port)}
    made = Store(
        f"http://{LOOPBACK}:{port}",
        state / "store.sqlite3",
        Child(programs.store(live._layout, environ)),
    )
    wait_until(lambda: _answers(made.url), START_S, lambda: live.log("store"))
    return made


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/livez", trust_env=False).is_success
    except httpx.TransportError:
        return False
