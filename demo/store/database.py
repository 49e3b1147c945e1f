"""The store's SQLite file: how it is opened, made and filled.

A writer takes the one write lock at BEGIN, so what it reads cannot change before it
commits.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import Any

from . import money

VERSION = 2
Row = sqlite3.Row
Connection = sqlite3.Connection


class Broken(Exception):
    """The database did what it never does; the transaction is rolled back."""


def stamp(moment: datetime) -> str:
    """A time as it is stored and shown: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> str:
    """This moment, by the store's own clock."""
    return stamp(datetime.now(UTC))


@contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """A connection for queries; autocommit, so it never holds a lock."""
    with closing(_open(path)) as db:
        yield db


@contextmanager
def writing(path: Path) -> Iterator[Connection]:
    """One write transaction: committed at the end, rolled back by an exception."""
    with closing(_open(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield db
        except BaseException:
            db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")


def prepare(path: Path) -> None:
    """Make and fill the database unless it is there. Safe to call again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(_open(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if not version:
            _build(db)
        elif version < VERSION:
            _upgrade(db)


def _open(path: Path) -> Connection:
    db = sqlite3.connect(path, timeout=8, isolation_level=None)
    db.row_factory = sqlite3.Row
    db.execute("PRAGMA foreign_keys = ON")
    # Money moved must survive a power cut as soon as the gate has been told so.
    db.execute("PRAGMA synchronous = FULL")
    return db


def _build(db: Connection) -> None:
    """Schema and data in one transaction, so a half-made store cannot stay."""
    script = resources.files(__package__).joinpath("schema.sql").read_text()
    db.executescript("BEGIN IMMEDIATE;\n" + script)
    try:
        _fill(db, datetime.now(UTC))
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def _upgrade(db: Connection) -> None:
    """A store of the first version learns how orders were paid and what labels cost."""
    db.execute("BEGIN IMMEDIATE")
    db.execute("ALTER TABLE purchase ADD COLUMN payment TEXT NOT NULL DEFAULT ''")
    db.execute(
        "ALTER TABLE return_label ADD COLUMN cost_minor INTEGER NOT NULL DEFAULT 0"
    )
    db.executemany(
        "UPDATE purchase SET payment = ? WHERE customer = ?",
        [(person["payment"], person["id"]) for person in data("customers")],
    )
    db.execute(f"PRAGMA user_version = {VERSION}")
    db.execute("COMMIT")


def data(name: str) -> list[dict[str, Any]]:
    """One file of the shipped data."""
    source = resources.files(__package__).joinpath("data", f"{name}.json")
    rows: list[dict[str, Any]] = json.loads(source.read_text("utf-8"))
    return rows


def _fill(db: Connection, today: datetime) -> None:
    """The shipped world. Its dates are told in days before the first start."""
    prices = {row["sku"]: _minor(row["price"]) for row in data("products")}
    db.executemany(
        "INSERT INTO product VALUES (?, ?, ?, ?, ?, ?)",
        [
            (p["sku"], p["name"], p["category"], prices[p["sku"]], "USD", p["stock"])
            for p in data("products")
        ],
    )
    known: dict[str, tuple[str, str]] = {}
    for person in data("customers"):
        address = json.dumps(person["address"])
        known[person["id"]] = (address, person["payment"])
        until = stamp(today + timedelta(days=person["retention_days"]))
        db.execute(
            "INSERT INTO customer (id, name, email, address, retention_until)"
            " VALUES (?, ?, ?, ?, ?)",
            (
                person["id"],
                person["name"],
                person["email"],
                address,
                until,
            ),
        )
    for order in data("orders"):
        _insert_order(db, order, today, prices, known[order["customer"]])
    for message in data("messages"):
        _insert_message(db, message, today)


def _insert_order(
    db: Connection,
    order: dict[str, Any],
    today: datetime,
    prices: dict[str, int],
    known: tuple[str, str],
) -> None:
    """`known` are the customer's address and payment method."""
    delivered = order.get("delivered_days_ago")
    db.execute(
        "INSERT INTO purchase (id, customer, placed_at, status, carrier,"
        " carrier_status, delivered_at, address, payment, total_minor, currency)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            order["id"],
            order["customer"],
            stamp(today - timedelta(days=order["placed_days_ago"])),
            order["status"],
            order.get("carrier", ""),
            order.get("carrier_status", ""),
            None if delivered is None else stamp(today - timedelta(days=delivered)),
            *known,
            sum(prices[sku] * quantity for sku, quantity in order["lines"]),
            money.CURRENCY,
        ),
    )
    db.executemany(
        "INSERT INTO line VALUES (?, ?, ?, ?)",
        [(order["id"], sku, n, prices[sku]) for sku, n in order["lines"]],
    )


def _insert_message(db: Connection, message: dict[str, Any], today: datetime) -> None:
    db.execute(
        "INSERT INTO message VALUES (?, ?, ?, ?, ?, ?)",
        (
            message["id"],
            stamp(today - timedelta(minutes=message["minutes_ago"])),
            message["from"],
            message["name"],
            message["subject"],
            spelled_out(message["body"]),
        ),
    )


def spelled_out(body: str | list[Any]) -> str:
    """A body, or one told in parts of which some are repeated: padding is long."""
    parts = [body] if isinstance(body, str) else body
    return "".join(
        part if isinstance(part, str) else part["repeat"] * part["times"]
        for part in parts
    )


def _minor(text: str) -> int:
    amount = money.minor(text)
    if amount is None:
        raise ValueError(f"not an amount: {text}")
    return amount
