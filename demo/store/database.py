"""The store's SQLite file: schema, shipped data, and the form in which the store keeps
time and money."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from world import database
from world.database import insert

PATIENCE_S = 8.0  # less than the gate waits for an answer
reading = partial(database.reading, patience_s=PATIENCE_S)
writing = partial(database.writing, patience_s=PATIENCE_S)
HERE = Path(__file__).parent
VERSION = 2
CURRENCY = "USD"
_set_moment: ContextVar[datetime | None] = ContextVar("set_moment", default=None)
AMOUNT = re.compile(r"(0|[1-9]\d{0,8})(?:\.(\d{1,2}))?", re.ASCII)


def format_time(moment: datetime) -> str:
    """A time as it is stored: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> str:
    """The current time, by the store's own clock."""
    return format_time(_set_moment.get() or datetime.now(UTC))


@contextmanager
def set_clock(moment: datetime) -> Iterator[None]:
    """Let the store's clock stand still at a moment: the demo's history happened
    then."""
    token = _set_moment.set(moment)
    try:
        yield
    finally:
        _set_moment.reset(token)


def parse_amount(text: object) -> int | None:
    """The text "899.00" as 89900; None for anything else than such a text."""
    match = AMOUNT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    return int(match[1]) * 100 + int((match[2] or "").ljust(2, "0"))


def format_amount(minor_units: int) -> str:
    """89900 as "899.00"."""
    return f"{minor_units // 100}.{minor_units % 100:02d}"


def prepare(path: Path) -> None:
    """Create and fill the database unless it exists. Safe to call again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(database.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        if db.execute("PRAGMA user_version").fetchone()[0]:
            return
        # One transaction for schema and data: a crash leaves no half-filled store.
        db.executescript("BEGIN IMMEDIATE;" + (HERE / "schema.sql").read_text())
        _fill(db, datetime.now(UTC))
        db.execute(f"PRAGMA user_version = {VERSION}")
        db.execute("COMMIT")


def data(name: str) -> Any:
    """One file of the shipped data: a list of rows, or the labels by field."""
    return json.loads((HERE / f"data/{name}.json").read_text())


def expand_body(body: str | list[Any]) -> str:
    """The text of a shipped message; a list holds parts, of which some repeat."""
    parts = [body] if isinstance(body, str) else body
    return "".join(
        part if isinstance(part, str) else part["repeat"] * part["times"]
        for part in parts
    )


def _fill(db: database.Connection, today: datetime) -> None:
    """Insert the shipped data. It counts its dates in days before the first start."""
    prices = {}
    for product in data("products"):
        price = parse_amount(product.pop("price"))
        prices[product["sku"]] = price
        insert(db, "product", **product, price_minor=price, currency=CURRENCY)
    customers = {person["id"]: person for person in data("customers")}
    for person in customers.values():
        insert(
            db,
            "customer",
            id=person["id"],
            name=person["name"],
            email=person["email"],
            address=json.dumps(person["address"]),
            retention_until=_shift(today, days=person["retention_days"]),
        )
    for order in data("orders"):
        _insert_order(db, order, customers[order["customer"]], prices, today)
    for message in data("messages"):
        insert(
            db,
            "message",
            id=message["id"],
            received_at=_shift(today, minutes=-message["minutes_ago"]),
            sender=message["from"],
            name=message["name"],
            subject=message["subject"],
            body=expand_body(message["body"]),
        )


def _insert_order(
    db: database.Connection,
    order: dict[str, Any],
    person: dict[str, Any],
    prices: dict[str, Any],
    today: datetime,
) -> None:
    delivered = order.get("delivered_days_ago")
    insert(
        db,
        "purchase",
        id=order["id"],
        customer=person["id"],
        placed_at=_shift(today, days=-order["placed_days_ago"]),
        status=order["status"],
        carrier=order.get("carrier", ""),
        carrier_status=order.get("carrier_status", ""),
        delivered_at=None if delivered is None else _shift(today, days=-delivered),
        address=json.dumps(person["address"]),
        payment=person["payment"],
        total_minor=sum(prices[sku] * quantity for sku, quantity in order["lines"]),
        currency=CURRENCY,
    )
    for sku, quantity in order["lines"]:
        row = {"sku": sku, "quantity": quantity, "price_minor": prices[sku]}
        insert(db, "line", purchase=order["id"], **row)


def _shift(today: datetime, **distance: float) -> str:
    return format_time(today + timedelta(**distance))
