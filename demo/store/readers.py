"""The state that an effect would change, for the people who decide.

Everything comes from the store's own rows, nothing from the agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from world.database import Connection, Row
from world.services import Refusal

from . import database, records
from .database import CURRENCY, format_amount
from .effects import LABEL_COSTS, Args

Reading = dict[str, Any]

LABELS: dict[str, str] = database.data("labels")
PARCEL = {"paid": "Not shipped", "shipped": "In transit", "delivered": "Delivered"}


def read(store: Path, tool: str, args: Args) -> Reading:
    """The state before `tool`. What does not exist gives no keys, so the gate blocks
    the effect."""
    with database.reading(store) as db:
        try:
            reading = READERS[tool](db, args)
        except Refusal:
            reading = {}
    shown = {**(reading.get("before") or {}), **reading.get("facts", {})}
    labels = {name: LABELS[name] for name in shown if name in LABELS}
    return {
        "before": None,
        "keys": {},
        "facts": {},
        "preconditions": {},
        "source": "store",
        **reading,
        "labels": labels | reading.get("labels", {}),
    }


def read_stock(db: Connection, args: Args) -> Reading:
    return {"before": {"stock": records.load(db, "product", args.get("sku"))["stock"]}}


def read_drafts(db: Connection, args: Args) -> Reading:
    query = "SELECT body FROM draft WHERE purchase = ? ORDER BY id"
    rows = db.execute(query, (str(args.get("order_id")),))
    return {"before": {"drafts": [body for (body,) in rows]}}


def read_order(db: Connection, args: Args) -> Reading:
    order = records.load(db, "purchase", args.get("order_id"))
    facts = _collect_facts(db, order)
    before = {
        "order_total": f"{facts['order_total']} {order['currency']}",
        "order_refunded": f"{facts['order_refunded']} {order['currency']}",
        "status": order["status"],
        "carrier_status": facts["carrier_status"],
        "customer": order["customer"],
    }
    return {
        "before": before,
        "keys": {"customer": order["customer"], "order": order["id"]},
        "facts": facts,
        "preconditions": {"order_version": order["version"]},
    }


def _collect_facts(db: Connection, order: Row) -> dict[str, Any]:
    """What rules and reviewers may read of an order. Each amount has its currency
    beside it."""
    refunded = records.sum_refunds(db, order["id"])
    customer = records.load(db, "customer", order["customer"])
    address = records.load_address(order)
    amounts = {
        "order_total": order["total_minor"],
        "order_refunded": refunded,
        "order_kept": order["total_minor"] - refunded,
    }
    facts: dict[str, Any] = {}
    for name, amount in amounts.items():
        facts[name] = format_amount(amount)
        facts[f"{name}_currency"] = order["currency"]
    return {
        **facts,
        "delivered": order["status"] == "delivered",
        "shipped": order["status"] in ("shipped", "delivered"),
        "parcel": PARCEL[order["status"]],
        "carrier_status": order["carrier_status"] or "Nothing yet",
        "destination": f"{address['city']}, {address['region']}",
        **_drop_empty(customer_name=customer["name"], payment_method=order["payment"]),
    }


def _drop_empty(**facts: str) -> dict[str, str]:
    """The facts that the store knows: a deleted customer has no name."""
    return {name: value for name, value in facts.items() if value}


def read_labels(db: Connection, args: Args) -> Reading:
    reading = read_order(db, args)
    labels = records.list_labels(db, args["order_id"])
    # A label does not depend on the order's version, so it has no precondition.
    return {**reading, "before": {"labels": labels}, "preconditions": {}}


def read_return_labels(db: Connection, args: Args) -> Reading:
    reading = read_order(db, args)
    query = "SELECT tracking FROM return_label WHERE purchase = ? ORDER BY id"
    made = [tracking for (tracking,) in db.execute(query, (args["order_id"],))]
    facts, cost = reading["facts"], LABEL_COSTS.get(str(args.get("carrier")))
    facts["return_label_count"] = len(made)
    if cost is not None:
        facts |= {"label_cost": format_amount(cost), "label_cost_currency": CURRENCY}
    return {**reading, "before": {"return_labels": made, **reading["before"]}}


def read_address(db: Connection, args: Args) -> Reading:
    reading = read_order(db, args)
    order = records.load(db, "purchase", args["order_id"])
    # The reviewer compares the account's mailbox with the sender of the message.
    email = records.load(db, "customer", order["customer"])["email"]
    before = {
        "address": records.load_address(order),
        "status": order["status"],
        "carrier_status": reading["before"]["carrier_status"],
        **_drop_empty(customer_email=email),
    }
    return {**reading, "before": before}


def read_customer(db: Connection, args: Args) -> Reading:
    """The fields that a deletion erases, as the record; what stays, as facts."""
    customer = records.load(db, "customer", args.get("customer_id"))
    query = "SELECT COUNT(*) FROM purchase WHERE customer = ?"
    address = records.format_address(records.load_address(customer))
    return {
        "before": {
            "name": customer["name"],
            "email": customer["email"],
            "address": address,
        },
        "keys": {"customer": customer["id"]},
        "facts": {
            "under_retention": records.is_under_retention(customer),
            "retention_until": customer["retention_until"],
            "orders": db.execute(query, (customer["id"],)).fetchone()[0],
            "deleted": customer["deleted_at"] is not None,
            **_drop_empty(customer_name=customer["name"]),
        },
        "preconditions": {"customer_version": customer["version"]},
        "labels": {"address": "Address"},
    }


def read_recipients(db: Connection, args: Args) -> Reading:
    lists = [args.get(field) for field in ("to", "cc", "bcc")]
    boxes = [
        str(b).lower() for boxes in lists if isinstance(boxes, list) for b in boxes
    ]
    customers = {row["email"].lower() for row in db.execute("SELECT * FROM customer")}
    known = sum(box in customers for box in boxes)
    mails = db.execute("SELECT sent_to, cc, bcc FROM mail")
    sent = [{b.lower() for boxes in row for b in json.loads(boxes)} for row in mails]
    return {
        "before": {
            "known_recipients": f"{known} of {len(boxes)}",
            "mails_before": sum(not mail.isdisjoint(boxes) for mail in sent),
        },
        "facts": {"known_recipients": known == len(boxes)},
    }


READERS: dict[str, Callable[[Connection, Args], Reading]] = {
    "look_up_order": lambda db, args: {},
    "check_inventory": read_stock,
    "draft_reply": read_drafts,
    "add_label": read_labels,
    "send_email": read_recipients,
    "create_return_label": read_return_labels,
    "process_refund": read_order,
    "change_shipped_address": read_address,
    "delete_customer": read_customer,
}
