"""What the store's pages and its inbox show, as plain values."""

from __future__ import annotations

import json
from typing import Any

from . import money, records
from .database import Connection, Row
from .refusals import Refusal
from .shown import visible

Shown = dict[str, Any]

LEDGER = """
SELECT refund.*, customer.id AS customer, call.received,
       call.first_at, call.last_at, purchase.total_minor
FROM refund JOIN call USING (key)
JOIN purchase ON purchase.id = refund.purchase
JOIN customer ON customer.id = purchase.customer
ORDER BY refund.id DESC
"""
ORDERS = """
SELECT purchase.*, customer.name,
       (SELECT COALESCE(SUM(amount_minor), 0) FROM refund
        WHERE refund.purchase = purchase.id) AS refunded,
       (SELECT GROUP_CONCAT(label, ', ') FROM tag
        WHERE tag.purchase = purchase.id) AS labels
FROM purchase JOIN customer ON customer.id = purchase.customer
ORDER BY purchase.id DESC
"""


def ledger(db: Connection) -> list[Shown]:
    """Every refund paid, newest first, with how often its key was received."""
    return [
        {
            "id": f"RF-{row['id']}",
            "at": shown_time(row["at"]),
            "order": row["purchase"],
            "customer": row["customer"],
            "amount": _money(row["amount_minor"], row["currency"]),
            "total": _money(row["total_minor"], row["currency"]),
            "reason": visible(row["reason"]),
            "key": row["key"],
            "received": str(row["received"]),
        }
        for row in db.execute(LEDGER)
    ]


def paid(db: Connection) -> str:
    """All the money that was ever paid back."""
    query = "SELECT COALESCE(SUM(amount_minor), 0) FROM refund"
    return _money(db.execute(query).fetchone()[0], money.CURRENCY)


def orders(db: Connection) -> list[Shown]:
    """Every order, newest first."""
    return [_order(row) for row in db.execute(ORDERS)]


def _order(row: Row) -> Shown:
    return {
        "id": row["id"],
        "placed_at": shown_time(row["placed_at"]),
        "status": row["status"],
        "carrier": row["carrier"],
        "carrier_status": row["carrier_status"],
        "customer": row["customer"],
        "name": row["name"],
        "total": _money(row["total_minor"], row["currency"]),
        "refunded": _money(row["refunded"], row["currency"]) if row["refunded"] else "",
        "labels": visible(row["labels"] or ""),
    }


def order(db: Connection, number: str) -> Shown:
    """One order with all that happened to it. Raises Refusal."""
    row = records.order(db, number)
    person = records.customer(db, row["customer"])
    refunded = records.refunded(db, number)
    return {
        "id": row["id"],
        "placed_at": shown_time(row["placed_at"]),
        "delivered_at": shown_time(row["delivered_at"] or ""),
        "status": row["status"],
        "carrier": row["carrier"],
        "carrier_status": row["carrier_status"],
        "customer": person["id"],
        "name": person["name"] or "deleted",
        "email": person["email"],
        "address": address(records.address(row)),
        "lines": records.lines(db, number),
        "total": _money(row["total_minor"], row["currency"]),
        "refunded": _money(refunded, row["currency"]),
        "left": _money(row["total_minor"] - refunded, row["currency"]),
        "version": str(row["version"]),
        "labels": [visible(label) for label in records.labels(db, number)],
        "refunds": [r for r in ledger(db) if r["order"] == number],
        "returns": [r for r in return_labels(db) if r["order"] == number],
        "redirections": [r for r in redirections(db) if r["order"] == number],
    }


def mails(db: Connection) -> list[Shown]:
    """Outgoing mail, newest first."""
    return [
        {
            "id": f"M-{row['id']}",
            "at": shown_time(row["at"]),
            "to": ", ".join(json.loads(row["sent_to"])),
            "cc": ", ".join(json.loads(row["cc"])),
            "bcc": ", ".join(json.loads(row["bcc"])),
            "subject": visible(row["subject"]),
            "body": visible(row["body"]),
            "received": str(row["received"]),
        }
        for row in _newest(db, "mail")
    ]


def tags(db: Connection) -> list[Shown]:
    """Labels put on orders, newest first."""
    return [
        {**_base(row), "label": visible(row["label"])} for row in _newest(db, "tag")
    ]


def drafts(db: Connection) -> list[Shown]:
    """Replies kept for a colleague, newest first."""
    return [
        {**_base(row), "body": visible(row["body"])} for row in _newest(db, "draft")
    ]


def return_labels(db: Connection) -> list[Shown]:
    """Return labels ordered, newest first."""
    return [
        {**_base(row), "carrier": row["carrier"], "tracking": row["tracking"]}
        for row in _newest(db, "return_label")
    ]


def redirections(db: Connection) -> list[Shown]:
    """Addresses changed, newest first."""
    return [
        {
            **_base(row),
            "was": address(json.loads(row["was"])),
            "became": address(json.loads(row["became"])),
        }
        for row in _newest(db, "redirection")
    ]


def deletions(db: Connection) -> list[Shown]:
    """Customers deleted, newest first."""
    return [
        {"at": shown_time(row["at"]), "customer": row["customer"]}
        for row in _newest(db, "deletion")
    ]


def inbox(db: Connection) -> list[Shown]:
    """What customers wrote, oldest first, without the bodies. Texts are as sent."""
    query = "SELECT id, received_at, sender, name, subject FROM message ORDER BY id"
    return [
        {
            "id": row["id"],
            "received_at": row["received_at"],
            "from": row["sender"],
            "name": row["name"],
            "subject": row["subject"],
        }
        for row in db.execute(query)
    ]


def message(db: Connection, number: str) -> Shown:
    """One message with its body, as sent. Raises Refusal `unknown_message`."""
    query = "SELECT * FROM message WHERE id = ?"
    row = db.execute(query, (number,)).fetchone()
    if row is None:
        raise Refusal("unknown_message", "There is no message with this number.")
    return {
        "id": row["id"],
        "received_at": row["received_at"],
        "from": row["sender"],
        "name": row["name"],
        "subject": row["subject"],
        "body": row["body"],
    }


def shown_time(stamp: str) -> str:
    """A stored time as people read it; HTML takes this form too."""
    return stamp.replace("T", " ")


def address(value: dict[str, str]) -> str:
    """An address on one line."""
    return visible(records.line(value))


def _newest(db: Connection, table: str) -> list[Row]:
    """The latest rows of one of our own tables, with how often their key came."""
    # `table` is a name written in this module, never a caller's text.
    query = (
        f"SELECT {table}.*, call.received FROM {table}"  # noqa: S608
        f" JOIN call USING (key) ORDER BY {table}.id DESC LIMIT 200"
    )
    return db.execute(query).fetchall()


def _base(row: Row) -> Shown:
    return {
        "at": shown_time(row["at"]),
        "order": row["purchase"],
        "received": str(row["received"]),
    }


def _money(minor: int, currency: str) -> str:
    return f"{money.text(minor)} {currency}"
