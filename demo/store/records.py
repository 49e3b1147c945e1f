"""Rows that effects, readers and pages all need, found or refused."""

from __future__ import annotations

import json
from typing import Any

from . import database, money
from .database import Connection, Row
from .refusals import Refusal


def order(db: Connection, number: object) -> Row:
    """One order. Raises Refusal `unknown_order`."""
    row = _one(db, "SELECT * FROM purchase WHERE id = ?", number)
    if row is None:
        raise Refusal("unknown_order", "There is no order with this number.")
    return row


def customer(db: Connection, number: object) -> Row:
    """One customer. Raises Refusal `unknown_customer`."""
    row = _one(db, "SELECT * FROM customer WHERE id = ?", number)
    if row is None:
        raise Refusal("unknown_customer", "There is no customer with this number.")
    return row


def product(db: Connection, sku: object) -> Row:
    """One product. Raises Refusal `unknown_sku`."""
    row = _one(db, "SELECT * FROM product WHERE sku = ?", sku)
    if row is None:
        raise Refusal("unknown_sku", "There is no product with this number.")
    return row


def refunded(db: Connection, number: str) -> int:
    """What was paid back on an order so far, in minor units."""
    query = "SELECT COALESCE(SUM(amount_minor), 0) FROM refund WHERE purchase = ?"
    total: int = db.execute(query, (number,)).fetchone()[0]
    return total


def lines(db: Connection, number: str) -> list[dict[str, Any]]:
    """What was bought in an order."""
    query = (
        "SELECT line.*, product.name FROM line JOIN product USING (sku)"
        " WHERE purchase = ? ORDER BY sku"
    )
    return [
        {
            "sku": row["sku"],
            "name": row["name"],
            "quantity": row["quantity"],
            "price": money.text(row["price_minor"]),
        }
        for row in db.execute(query, (number,))
    ]


def labels(db: Connection, number: str) -> list[str]:
    """The internal labels of an order, oldest first."""
    query = "SELECT label FROM tag WHERE purchase = ? ORDER BY id"
    return [row["label"] for row in db.execute(query, (number,))]


def return_labels(db: Connection, number: str) -> list[str]:
    """The tracking numbers of an order's return labels, oldest first."""
    query = "SELECT tracking FROM return_label WHERE purchase = ? ORDER BY id"
    return [row["tracking"] for row in db.execute(query, (number,))]


def drafts(db: Connection, number: object) -> list[str]:
    """The draft replies kept for an order, oldest first."""
    query = "SELECT body FROM draft WHERE purchase = ? ORDER BY id"
    return [row["body"] for row in db.execute(query, (str(number),))]


def mails_to(db: Connection, boxes: list[str]) -> int:
    """How many mails went to any of these mailboxes so far."""
    asked = {box.lower() for box in boxes}
    query = "SELECT sent_to, cc, bcc FROM mail"
    sent = [[*map(json.loads, row)] for row in db.execute(query)]
    return sum(any(b.lower() in asked for f in mail for b in f) for mail in sent)


def address(row: Row) -> dict[str, str]:
    """The address of an order or a customer."""
    value: dict[str, str] = json.loads(row["address"])
    return value


def line(address: dict[str, str]) -> str:
    """An address on one line."""
    names = ("line1", "line2", "city", "region", "postcode", "country")
    return ", ".join(address[name] for name in names if address.get(name))


def under_retention(person: Row) -> bool:
    """Whether the law still wants the customer's invoices kept."""
    return str(person["retention_until"]) > database.now()


def _one(db: Connection, query: str, value: object) -> Row | None:
    if not isinstance(value, str):
        return None
    row: Row | None = db.execute(query, (value,)).fetchone()
    return row
