"""The nine tools: what each checks, and what it then writes.

An effect and the row of its idempotency key are one SQLite transaction: there is never
one without the other, whatever dies when. An effect raises Refusal for what the store
will not do, before it writes anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from world.database import Connection, insert
from world.services import KeyReused, Refusal

from . import database, records
from .database import CURRENCY, format_amount

Args = Mapping[str, Any]
Result = dict[str, Any]
Effect = Callable[[Connection, Args, str], Result]

# What a prepaid return label of each carrier costs the store, in minor units.
LABEL_COSTS = {"Harrow Parcel": 690, "Bluebird Post": 540}
MAILBOX = re.compile(r"[^\s@,;<>\"]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+", re.ASCII)
DELIVERY = ("status", "placed_at", "delivered_at", "carrier", "carrier_status")
ADDRESS = ("line1", "city", "region", "postcode", "country")


def perform(store: Path, tool: str, args: Args, key: str) -> Result:
    """Perform an effect, or repeat the stored answer when its key has come before.

    A success is final. After a refusal the same key is tried again, because nothing
    happened. Raises KeyReused.
    """
    digest = sha256(json.dumps([tool, args], sort_keys=True).encode()).hexdigest()
    with database.writing(store) as db:
        at = database.now()
        row = db.execute("SELECT * FROM call WHERE key = ?", (key,)).fetchone()
        if row is None:
            first = {"key": key, "tool": tool, "digest": digest, "first_at": at}
            insert(db, "call", **first, last_at=at)
        elif row["digest"] != digest:
            raise KeyReused(key)
        else:
            query = "UPDATE call SET received = received + 1, last_at = ? WHERE key = ?"
            db.execute(query, (at, key))
            stored: Result = json.loads(row["answer"])
            if stored["status"] == "succeeded":
                return stored
        answer = _attempt(db, tool, args, key)
        query = "UPDATE call SET answer = ? WHERE key = ?"
        db.execute(query, (json.dumps(answer), key))
        return answer


def _attempt(db: Connection, tool: str, args: Args, key: str) -> Result:
    try:
        return {"status": "succeeded", "result": EFFECTS[tool](db, args, key)}
    except Refusal as refusal:
        return refusal.answer


def look_up_order(db: Connection, args: Args, key: str) -> Result:
    order = records.load(db, "purchase", args.get("order_id"))
    customer = records.load(db, "customer", order["customer"])
    return {
        "order_id": order["id"],
        **{name: order[name] for name in DELIVERY},
        "total": format_amount(order["total_minor"]),
        "refunded": format_amount(records.sum_refunds(db, order["id"])),
        "currency": order["currency"],
        "items": records.list_lines(db, order["id"]),
        "labels": records.list_labels(db, order["id"]),
        "customer_id": customer["id"],
        "customer_name": customer["name"],
        "customer_email": customer["email"],
        "order_version": order["version"],
    }


def check_inventory(db: Connection, args: Args, key: str) -> Result:
    product = records.load(db, "product", args.get("sku"))
    return {
        "sku": product["sku"],
        "name": product["name"],
        "price": format_amount(product["price_minor"]),
        "currency": product["currency"],
        "stock": product["stock"],
    }


def draft_reply(db: Connection, args: Args, key: str) -> Result:
    """Keep a reply for a colleague to read; the store sends nothing."""
    body, order = _read_text(args, "body"), _read_text(args, "order_id", empty=True)
    return {"draft_id": f"D-{_write(db, 'draft', key, purchase=order, body=body)}"}


def add_label(db: Connection, args: Args, key: str) -> Result:
    """Put an internal label on an order, unless the order has it."""
    order = records.load(db, "purchase", args.get("order_id"))["id"]
    label = _read_text(args, "label")
    if label not in records.list_labels(db, order):
        _write(db, "tag", key, purchase=order, label=label)
    return {"order_id": order, "labels": records.list_labels(db, order)}


def send_email(db: Connection, args: Args, key: str) -> Result:
    """Send a mail: here, into the outgoing mail of the store's pages."""
    to, cc, bcc = (_read_mailboxes(args, field) for field in ("to", "cc", "bcc"))
    if not to:
        raise Refusal("no_recipient", "A mail needs at least one recipient.")
    boxes = {"sent_to": json.dumps(to), "cc": json.dumps(cc), "bcc": json.dumps(bcc)}
    texts = {field: _read_text(args, field) for field in ("subject", "body")}
    number = _write(db, "mail", key, **boxes, **texts)
    return {"mail_id": f"M-{number}", "recipients": len({*to, *cc, *bcc})}


def create_return_label(db: Connection, args: Args, key: str) -> Result:
    """Order a prepaid return label from a carrier."""
    order = records.load(db, "purchase", args.get("order_id"))
    carrier = str(args.get("carrier"))
    if carrier not in LABEL_COSTS:
        raise Refusal("unknown_carrier", f"Carriers are {' and '.join(LABEL_COSTS)}.")
    if order["status"] == "paid":
        raise Refusal("not_shipped", "The order has not been shipped yet.")
    query = "SELECT COALESCE(MAX(id), 0) + 1 FROM return_label"
    number = db.execute(query).fetchone()[0]
    made = {
        "carrier": carrier,
        "tracking": f"{carrier[:2].upper()}-{order['id']}-{number}",
    }
    cost = LABEL_COSTS[carrier]
    _write(db, "return_label", key, purchase=order["id"], **made, cost_minor=cost)
    price = {"cost": format_amount(cost), "currency": CURRENCY}
    return {"order_id": order["id"], **made, **price}


def process_refund(db: Connection, args: Args, key: str) -> Result:
    """Pay money back on an order, never more than it cost in total."""
    order = records.load(db, "purchase", args.get("order_id"))
    currency = order["currency"]
    if args.get("currency") != currency:
        raise Refusal("wrong_currency", f"This order was paid in {currency}.")
    amount = database.parse_amount(args.get("amount"))
    if not amount:
        raise Refusal("invalid_args", "amount must be like 12.50 and above zero.")
    before = records.sum_refunds(db, order["id"])
    left = order["total_minor"] - before
    if amount > left:
        detail = (
            f"Only {format_amount(left)} {currency} of this order is left to refund."
        )
        raise Refusal("beyond_total", detail)
    money = {"amount_minor": amount, "currency": currency}
    reason = _read_text(args, "reason")
    number = _write(db, "refund", key, purchase=order["id"], **money, reason=reason)
    _raise_version(db, order["id"])
    return {
        "refund_id": f"RF-{number}",
        "order_id": order["id"],
        "amount": format_amount(amount),
        "currency": currency,
        "refunded": format_amount(before + amount),
        "left": format_amount(left - amount),
    }


def change_shipped_address(db: Connection, args: Args, key: str) -> Result:
    """Send a parcel that has not arrived yet somewhere else."""
    order = records.load(db, "purchase", args.get("order_id"))
    if order["status"] == "delivered":
        raise Refusal("already_delivered", "The carrier has delivered this order.")
    address = _read_address(args)
    became = json.dumps(address)
    moved = {"was": order["address"], "became": became}
    _write(db, "redirection", key, purchase=order["id"], **moved)
    db.execute("UPDATE purchase SET address = ? WHERE id = ?", (became, order["id"]))
    _raise_version(db, order["id"])
    return {"order_id": order["id"], "address": address}


def delete_customer(db: Connection, args: Args, key: str) -> Result:
    """Erase a customer's name, mail and address; the orders stay as figures."""
    customer = records.load(db, "customer", args.get("customer_id"))
    if customer["deleted_at"]:
        raise Refusal("already_deleted", "This customer was deleted before.")
    if records.is_under_retention(customer):
        until = str(customer["retention_until"])[:10]
        raise Refusal("under_retention", f"Invoices must be kept until {until}.")
    at = database.now()
    insert(db, "deletion", key=key, at=at, customer=customer["id"])
    db.execute(
        "UPDATE customer SET name = '', email = '', address = '{}',"
        " version = version + 1, deleted_at = ? WHERE id = ?",
        (at, customer["id"]),
    )
    return {"customer_id": customer["id"], "deleted_at": at}


EFFECTS: dict[str, Effect] = {
    effect.__name__: effect
    for effect in (
        look_up_order,
        check_inventory,
        draft_reply,
        add_label,
        send_email,
        create_return_label,
        process_refund,
        change_shipped_address,
        delete_customer,
    )
}


def _write(db: Connection, table: str, key: str, **values: Any) -> int:
    return insert(db, table, key=key, at=database.now(), **values)


def _raise_version(db: Connection, order: str) -> None:
    """Outdate what people have seen of this order."""
    db.execute("UPDATE purchase SET version = version + 1 WHERE id = ?", (order,))


def _read_text(args: Args, field: str, *, empty: bool = False) -> str:
    value = args.get(field)
    if not isinstance(value, str) or not (value.strip() or empty):
        raise Refusal("invalid_args", f"{field} must be a text.")
    return value


def _read_mailboxes(args: Args, field: str) -> list[str]:
    boxes = args.get(field) or []
    if not isinstance(boxes, list):
        raise Refusal("invalid_args", f"{field} must be a list.")
    if not all(isinstance(box, str) and MAILBOX.fullmatch(box) for box in boxes):
        raise Refusal("invalid_args", f"{field} holds what is no mail address.")
    return boxes


def _read_address(args: Args) -> dict[str, str]:
    value = args.get("address")
    if not isinstance(value, Mapping):
        raise Refusal("invalid_args", "address must be an object.")
    missing = [f for f in ADDRESS if not str(value.get(f) or "").strip()]
    if missing:
        raise Refusal("invalid_args", f"address lacks {', '.join(missing)}.")
    return {f: str(value[f]) for f in (*ADDRESS, "line2") if value.get(f)}
