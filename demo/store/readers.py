"""What stands now where an effect would land: for the people who decide.

Everything comes from the store's own rows, nothing from the agent.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import database, money, records
from .database import Connection, Row
from .effects import LABEL_COSTS, Args
from .refusals import Refusal

Reading = dict[str, Any]
Reader = Callable[[Connection, Args], Reading]

LABELS = {
    "order_total": "Order total",
    "order_refunded": "Refunded so far",
    "status": "Order status",
    "parcel": "Parcel",
    "carrier_status": "Carrier says",
    "customer": "Customer number",
    "customer_name": "Customer",
    "customer_email": "E-mail of the account",
    "payment_method": "Paid with",
    "destination": "Shipped to",
    "labels": "Labels now",
    "return_labels": "Return labels so far",
    "label_cost": "Cost of the label",
    "address": "Ships to now",
    "name": "Name",
    "email": "E-mail",
    "orders": "Orders",
    "retention_until": "Invoices must be kept until",
    "stock": "On the shelf",
    "drafts": "Drafts so far",
    "known_recipients": "Recipients that are customers",
    "mails_before": "Mails sent to them so far",
}
PARCEL = {"paid": "Not shipped", "shipped": "In transit", "delivered": "Delivered"}


def read(store: Path, tool: str, args: Args) -> Reading:
    """The state before `tool`; unknown things give no keys, so the gate blocks."""
    with database.reading(store) as db:
        try:
            reading = READERS[tool](db, args)
        except Refusal:
            reading = {"before": None}
    known = {**(reading.get("before") or {}), **(reading.get("facts") or {})}
    labels = {name: LABELS[name] for name in known if name in LABELS}
    return {
        "before": None,
        "keys": {},
        "facts": {},
        "preconditions": {},
        "source": "store",
        **reading,
        "labels": labels | reading.get("labels", {}),
    }


def _order_facts(db: Connection, order: Row) -> dict[str, Any]:
    """What rules and reviewers may read of an order; money as text beside its
    currency. The store does not always know how an old order was paid."""
    refunded = records.refunded(db, order["id"])
    person = records.customer(db, order["customer"])
    place = records.address(order)
    return {
        "order_total": money.text(order["total_minor"]),
        "order_total_currency": order["currency"],
        "order_refunded": money.text(refunded),
        "order_refunded_currency": order["currency"],
        "order_kept": money.text(order["total_minor"] - refunded),
        "order_kept_currency": order["currency"],
        "delivered": order["status"] == "delivered",
        "shipped": order["status"] in ("shipped", "delivered"),
        "parcel": PARCEL[order["status"]],
        "carrier_status": _of_carrier(order),
        "destination": f"{place['city']}, {place['region']}",
        **_known(customer_name=person["name"], payment_method=order["payment"]),
    }


def _of_carrier(order: Row) -> str:
    return order["carrier_status"] or "Nothing yet"


def _known(**facts: str) -> dict[str, str]:
    """Those that the store knows: the name of a deleted customer is gone."""
    return {name: value for name, value in facts.items() if value}


def _order(db: Connection, args: Args) -> Reading:
    order = records.order(db, args.get("order_id"))
    facts = _order_facts(db, order)
    before = {
        "order_total": f"{facts['order_total']} {order['currency']}",
        "order_refunded": f"{facts['order_refunded']} {order['currency']}",
        "status": order["status"],
        "carrier_status": _of_carrier(order),
        "customer": order["customer"],
    }
    return {
        "before": before,
        "keys": {"customer": order["customer"], "order": order["id"]},
        "facts": facts,
        "preconditions": {"order_version": order["version"]},
    }


def _labels(db: Connection, args: Args) -> Reading:
    reading = _order(db, args)
    labels = records.labels(db, str(args["order_id"]))
    # A label changes nothing of the order, so no version of it must hold still.
    return {**reading, "before": {"labels": labels}, "preconditions": {}}


def _return_label(db: Connection, args: Args) -> Reading:
    reading = _order(db, args)
    made = records.return_labels(db, str(args["order_id"]))
    cost = LABEL_COSTS.get(str(args.get("carrier")))
    facts = reading["facts"]
    facts["return_label_count"] = len(made)
    if cost is not None:
        facts |= {"label_cost": money.text(cost), "label_cost_currency": money.CURRENCY}
    return {**reading, "before": {"return_labels": made, **reading["before"]}}


def _address(db: Connection, args: Args) -> Reading:
    reading = _order(db, args)
    order = records.order(db, args["order_id"])
    shown = {name: reading["before"][name] for name in ("status", "carrier_status")}
    # Whether it is the customer who asks: an address in a letter is compared with it.
    person = records.customer(db, order["customer"])
    shown |= _known(customer_email=person["email"])
    return {**reading, "before": {"address": records.address(order), **shown}}


def _customer(db: Connection, args: Args) -> Reading:
    """The fields that a deletion erases, as the record; what stays, as facts."""
    person = records.customer(db, args.get("customer_id"))
    query = "SELECT COUNT(*) FROM purchase WHERE customer = ?"
    orders = db.execute(query, (person["id"],)).fetchone()[0]
    return {
        "before": {
            "name": person["name"],
            "email": person["email"],
            "address": records.line(records.address(person)),
        },
        "keys": {"customer": person["id"]},
        "facts": {
            "under_retention": records.under_retention(person),
            "retention_until": person["retention_until"],
            "orders": orders,
            "deleted": person["deleted_at"] is not None,
            **_known(customer_name=person["name"]),
        },
        "preconditions": {"customer_version": person["version"]},
        "labels": {"address": "Address"},
    }


def _inventory(db: Connection, args: Args) -> Reading:
    product = records.product(db, args.get("sku"))
    return {"before": {"stock": product["stock"]}}


def _recipients(db: Connection, args: Args) -> Reading:
    boxes = [b for field in ("to", "cc", "bcc") for b in _listed(args.get(field))]
    known = sum(_is_customer(db, box) for box in boxes)
    return {
        "before": {
            "known_recipients": f"{known} of {len(boxes)}",
            "mails_before": records.mails_to(db, [str(box) for box in boxes]),
        },
        "facts": {"known_recipients": known == len(boxes)},
    }


def _drafts(db: Connection, args: Args) -> Reading:
    return {"before": {"drafts": records.drafts(db, args.get("order_id"))}}


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _is_customer(db: Connection, box: object) -> bool:
    query = "SELECT 1 FROM customer WHERE email = ? COLLATE NOCASE"
    return db.execute(query, (str(box),)).fetchone() is not None


def _nothing(db: Connection, args: Args) -> Reading:
    return {}


READERS: dict[str, Reader] = {
    "look_up_order": _nothing,
    "check_inventory": _inventory,
    "draft_reply": _drafts,
    "add_label": _labels,
    "send_email": _recipients,
    "create_return_label": _return_label,
    "process_refund": _order,
    "change_shipped_address": _address,
    "delete_customer": _customer,
}
