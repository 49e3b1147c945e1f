"""The demo's store as it really runs: where the effects of the journeys land."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from demo.store import database
from hitl.environment import LOOPBACK
from hitl.local import installation
from hitl.local.process import Child
from tests.stack import Stack, free_port, wait_until

START_S = 30
_CUSTOMER = """INSERT INTO customer (id, name, email, address, retention_until)
    SELECT ?, name, email, address, retention_until FROM customer LIMIT 1"""
_PURCHASE = """INSERT INTO purchase (id, customer, placed_at, status, carrier,
    carrier_status, delivered_at, address, total_minor, currency)
    SELECT ?, ?, placed_at, status, carrier, carrier_status, delivered_at, address,
    total_minor, currency FROM purchase WHERE id = '78291'"""


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

    def sells(self, count: int) -> list[str]:
        """So many more orders like the laptop's, each of a customer of its own."""
        names = [(f"N-{number}", f"9{number:04}") for number in range(count)]
        with closing(sqlite3.connect(self.file)) as db, db:
            db.executemany(_CUSTOMER, [(customer,) for customer, _ in names])
            db.executemany(_PURCHASE, [(order, customer) for customer, order in names])
        return [order for _, order in names]

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
        Child(installation.build_store_program(live._layout, environ)),
    )
    wait_until(lambda: _answers(made.url), START_S, lambda: live.log("store"))
    return made


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/livez", trust_env=False).is_success
    except httpx2.TransportError:
        return False
