"""The nine tools: what each checks, and what it then writes.

Every effect runs inside the caller's write transaction, checks first and writes
after, and raises Refusal for what the store will not do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from . import database, money, records
from .database import Connection
from .refusals import Refusal

Args = Mapping[str, Any]
Result = dict[str, Any]

# What a prepaid return label of each carrier costs the store, in minor units.
LABEL_COSTS = {"Harrow Parcel": 690, "Bluebird Post": 540}
CARRIERS = tuple(LABEL_COSTS)
MAILBOX = re.compile(r"[^\s@,;<>\"]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", re.ASCII)
ADDRESS = ("line1", "city", "region", "postcode", "country")


class Mark(NamedTuple):
    """What every written row carries: the idempotency key and the time."""

    key: str
    at: str


Effect = Callable[[Connection, Args, Mark], Result]


def look_up_order(db: Connection, args: Args, mark: Mark) -> Result:
    """Everything support needs to know of one order."""
    order = records.order(db, args.get("order_id"))
    person = records.customer(db, order["customer"])
    return {
        "order_id": order["id"],
        "status": order["status"],
        "placed_at": order["placed_at"],
        "delivered_at": order["delivered_at"],
        "carrier": order["carrier"],
        "carrier_status": order["carrier_status"],
        "total": money.text(order["total_minor"]),
        "refunded": money.text(records.refunded(db, order["id"])),
        "currency": order["currency"],
        "items": records.lines(db, order["id"]),
        "labels": records.labels(db, order["id"]),
        "customer_id": person["id"],
        "customer_name": person["name"],
        "customer_email": person["email"],
        "order_version": order["version"],
    }


def check_inventory(db: Connection, args: Args, mark: Mark) -> Result:
    """What a product costs and how many are on the shelf."""
    product = records.product(db, args.get("sku"))
    return {
        "sku": product["sku"],
        "name": product["name"],
        "price": money.text(product["price_minor"]),
        "currency": product["currency"],
        "stock": product["stock"],
    }


def draft_reply(db: Connection, args: Args, mark: Mark) -> Result:
    """Keep a reply for a colleague to read; nothing is sent."""
    body = _text(args, "body")
    row = (mark.key, _text(args, "order_id", empty=True), body, mark.at)
    query = "INSERT INTO draft (key, purchase, body, at) VALUES (?, ?, ?, ?)"
    return {"draft_id": f"D-{_insert(db, query, row)}"}


def add_label(db: Connection, args: Args, mark: Mark) -> Result:
    """Put an internal label on an order."""
    order = records.order(db, args.get("order_id"))
    label = _text(args, "label")
    if label not in records.labels(db, order["id"]):
        query = "INSERT INTO tag (key, purchase, label, at) VALUES (?, ?, ?, ?)"
        _insert(db, query, (mark.key, order["id"], label, mark.at))
    return {"order_id": order["id"], "labels": records.labels(db, order["id"])}


def send_email(db: Connection, args: Args, mark: Mark) -> Result:
    """Send a mail: here, into the outgoing mail of the store's pages."""
    to, cc, bcc = (_mailboxes(args, field) for field in ("to", "cc", "bcc"))
    if not to:
        raise Refusal("no_recipient", "A mail needs at least one recipient.")
    row = (
        mark.key,
        *(json.dumps(boxes) for boxes in (to, cc, bcc)),
        _text(args, "subject"),
        _text(args, "body"),
        mark.at,
    )
    query = (
        "INSERT INTO mail (key, sent_to, cc, bcc, subject, body, at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)"
    )
    number = _insert(db, query, row)
    return {"mail_id": f"M-{number}", "recipients": len({*to, *cc, *bcc})}


def create_return_label(db: Connection, args: Args, mark: Mark) -> Result:
    """Order a prepaid return label from a carrier."""
    order = records.order(db, args.get("order_id"))
    carrier = args.get("carrier")
    if carrier not in CARRIERS:
        raise Refusal("unknown_carrier", f"Carriers are {' and '.join(CARRIERS)}.")
    if order["status"] == "paid":
        raise Refusal("not_shipped", "The order has not been shipped yet.")
    tracking = f"{str(carrier)[:2].upper()}-{order['id']}-{_next(db, 'return_label')}"
    query = (
        "INSERT INTO return_label (key, purchase, carrier, tracking, at, cost_minor)"
        " VALUES (?, ?, ?, ?, ?, ?)"
    )
    cost = LABEL_COSTS[str(carrier)]
    _insert(db, query, (mark.key, order["id"], carrier, tracking, mark.at, cost))
    return {
        "order_id": order["id"],
        "carrier": carrier,
        "tracking": tracking,
        "cost": money.text(cost),
        "currency": money.CURRENCY,
    }


def process_refund(db: Connection, args: Args, mark: Mark) -> Result:
    """Pay money back on an order, never more than it cost in total."""
    order = records.order(db, args.get("order_id"))
    amount = _amount(args, order["currency"])
    before = records.refunded(db, order["id"])
    left = order["total_minor"] - before
    if amount > left:
        raise Refusal(
            "beyond_total",
            f"Only {money.text(left)} {order['currency']} of this order is left"
            " to refund.",
        )
    query = (
        "INSERT INTO refund (key, purchase, amount_minor, currency, reason, at)"
        " VALUES (?, ?, ?, ?, ?, ?)"
    )
    row = (mark.key, order["id"], amount, order["currency"], _text(args, "reason"))
    number = _insert(db, query, (*row, mark.at))
    _touch(db, order["id"])
    return {
        "refund_id": f"RF-{number}",
        "order_id": order["id"],
        "amount": money.text(amount),
        "currency": order["currency"],
        "refunded": money.text(before + amount),
        "left": money.text(left - amount),
    }


def change_shipped_address(db: Connection, args: Args, mark: Mark) -> Result:
    """Send a parcel that has not arrived yet somewhere else."""
    order = records.order(db, args.get("order_id"))
    if order["status"] == "delivered":
        raise Refusal("already_delivered", "The carrier has delivered this order.")
    became = _address(args.get("address"))
    query = (
        "INSERT INTO redirection (key, purchase, was, became, at)"
        " VALUES (?, ?, ?, ?, ?)"
    )
    _insert(db, query, (mark.key, order["id"], order["address"], became, mark.at))
    db.execute("UPDATE purchase SET address = ? WHERE id = ?", (became, order["id"]))
    _touch(db, order["id"])
    return {"order_id": order["id"], "address": json.loads(became)}


def delete_customer(db: Connection, args: Args, mark: Mark) -> Result:
    """Erase a customer's name, mail and address; the orders stay as figures."""
    person = records.customer(db, args.get("customer_id"))
    if person["deleted_at"]:
        raise Refusal("already_deleted", "This customer was deleted before.")
    if records.under_retention(person):
        until = str(person["retention_until"])[:10]
        raise Refusal("under_retention", f"Invoices must be kept until {until}.")
    query = "INSERT INTO deletion (key, customer, at) VALUES (?, ?, ?)"
    _insert(db, query, (mark.key, person["id"], mark.at))
    db.execute(
        "UPDATE customer SET name = '', email = '', address = '{}',"
        " version = version + 1, deleted_at = ? WHERE id = ?",
        (mark.at, person["id"]),
    )
    return {"customer_id": person["id"], "deleted_at": mark.at}


EFFECTS: dict[str, Effect] = {
    "look_up_order": look_up_order,
    "check_inventory": check_inventory,
    "draft_reply": draft_reply,
    "add_label": add_label,
    "send_email": send_email,
    "create_return_label": create_return_label,
    "process_refund": process_refund,
    "change_shipped_address": change_shipped_address,
    "delete_customer": delete_customer,
}


def _insert(db: Connection, query: str, row: tuple[Any, ...]) -> int:
    number = db.execute(query, row).lastrowid
    if number is None:
        raise database.Broken("an insert gave no row")
    return number


def _next(db: Connection, table: str) -> int:
    """The next number of a table, known before the row is written."""
    query = "SELECT COALESCE(MAX(seq), 0) + 1 FROM sqlite_sequence WHERE name = ?"
    number: int = db.execute(query, (table,)).fetchone()[0]
    return number


def _touch(db: Connection, order: str) -> None:
    """A new version: whoever was shown the order before saw another one."""
    db.execute("UPDATE purchase SET version = version + 1 WHERE id = ?", (order,))


def _text(args: Args, field: str, *, empty: bool = False) -> str:
    value = args.get(field)
    if not isinstance(value, str) or not (value.strip() or empty):
        raise Refusal("invalid_args", f"{field} must be a text.")
    return value


def _amount(args: Args, currency: str) -> int:
    if args.get("currency") != currency:
        raise Refusal("wrong_currency", f"This order was paid in {currency}.")
    amount = money.minor(args.get("amount"))
    if not amount:
        raise Refusal("invalid_args", "amount must be like 12.50 and above zero.")
    return amount


def _mailboxes(args: Args, field: str) -> list[str]:
    boxes = args.get(field) or []
    if not isinstance(boxes, list):
        raise Refusal("invalid_args", f"{field} must be a list.")
    for box in boxes:
        if not (isinstance(box, str) and MAILBOX.fullmatch(box)):
            raise Refusal("invalid_args", f"{field} holds what is no mail address.")
    return boxes


def _address(value: object) -> str:
    """A complete address as JSON. Raises Refusal `invalid_args`."""
    if not isinstance(value, Mapping):
        raise Refusal("invalid_args", "address must be an object.")
    missing = [f for f in ADDRESS if not str(value.get(f) or "").strip()]
    if missing:
        raise Refusal("invalid_args", f"address lacks {', '.join(missing)}.")
    known = {f: str(value[f]) for f in (*ADDRESS, "line2") if value.get(f)}
    return json.dumps(known)
