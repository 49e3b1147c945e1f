"""Rows that effects, readers and pages share, and the store's refusals."""

from __future__ import annotations

import json
from typing import Any

from world.database import Connection, Row
from world.services import Refusal

from . import database
from .database import format_amount

MISSING = {
    "purchase": ("unknown_order", "order"),
    "customer": ("unknown_customer", "customer"),
    "product": ("unknown_sku", "product"),
}


def load(db: Connection, table: str, key: object) -> Row:
    """A row of `purchase`, `customer` or `product` by its number. Raises Refusal
    `unknown_order`, `unknown_customer` or `unknown_sku`."""
    code, name = MISSING[table]
    column = "sku" if table == "product" else "id"
    query = f"SELECT * FROM {table} WHERE {column} = ?"  # noqa: S608
    # SQLite would find the order "78291" for the number 78291 too.
    row: Row | None = None
    if isinstance(key, str):
        row = db.execute(query, (key,)).fetchone()
    if row is None:
        raise Refusal(code, f"There is no {name} with this number.")
    return row


def sum_refunds(db: Connection, order: str) -> int:
    """What was paid back on an order so far, in minor units."""
    query = "SELECT COALESCE(SUM(amount_minor), 0) FROM refund WHERE purchase = ?"
    total: int = db.execute(query, (order,)).fetchone()[0]
    return total


def list_lines(db: Connection, order: str) -> list[dict[str, Any]]:
    """What was bought in an order."""
    query = (
        "SELECT sku, name, quantity, line.price_minor"
        " FROM line JOIN product USING (sku) WHERE purchase = ? ORDER BY sku"
    )
    return [
        {"sku": sku, "name": name, "quantity": count, "price": format_amount(price)}
        for sku, name, count, price in db.execute(query, (order,))
    ]


def list_labels(db: Connection, order: object) -> list[str]:
    """The internal labels of an order, oldest first."""
    query = "SELECT label FROM tag WHERE purchase = ? ORDER BY id"
    return [label for (label,) in db.execute(query, (order,))]


def load_address(row: Row) -> dict[str, str]:
    """The address of an order or a customer."""
    address: dict[str, str] = json.loads(row["address"])
    return address


def format_address(address: dict[str, str]) -> str:
    names = ("line1", "line2", "city", "region", "postcode", "country")
    return ", ".join(address[name] for name in names if address.get(name))


def is_under_retention(customer: Row) -> bool:
    """Whether the law still requires the customer's invoices."""
    return str(customer["retention_until"]) > database.now()
