"""What Riley can do next: one builder per move, from the case to a proposal.

A builder is pure, so the same case always gives the same bytes, and the same
idempotency key then leads to the same proposal. It gives None where a move makes no
sense any more, and the planner goes on to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from . import words
from .case import Case

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Draft:
    """One action as Riley proposes it."""

    tool: str
    args: dict[str, Any]
    rationale: str
    expected_outcome: str = ""
    reversal: str = ""
    alternatives: tuple[tuple[str, str], ...] = ()
    uncertain: bool = False


Move = Callable[[Case], Draft | None]


def order_of(case: Case) -> Facts:
    """The order as the store told it; empty before the look-up."""
    return case.did("look_up") or {}


def look_up(case: Case) -> Draft | None:
    if "order_id" not in case.known:
        return None
    number = case.known["order_id"]
    return Draft(
        "look_up_order",
        {"order_id": number},
        f"The message is about order {number}.",
        "The order's items, total and delivery are known.",
    )


def stock(case: Case) -> Draft | None:
    items = order_of(case).get("items") or [{}]
    sku = case.known.get("sku") or items[0].get("sku")
    if not sku:
        return None
    why = f"The answer depends on how many of {sku} there are."
    return Draft("check_inventory", {"sku": sku}, why, "The stock is known.")


def label(case: Case) -> Draft | None:
    return _label(case, words.LABELS.get(case.intent, ""))


def label_told(case: Case) -> Draft | None:
    return _label(case, str(case.known.get("label_told", "")))


def _label(case: Case, text: str) -> Draft | None:
    order = order_of(case)
    if not order or not text:
        return None
    return Draft(
        "add_label",
        {"order_id": order["order_id"], "label": text},
        "So that colleagues find the order.",
        f"Order {order['order_id']} carries the label.",
        "The label can be corrected by another one.",
    )


def refund(case: Case) -> Draft | None:
    order = order_of(case)
    amount = _amount(case)
    if amount is None:
        return None
    args: dict[str, Any] = {
        "order_id": order["order_id"],
        "amount": amount,
        "currency": order["currency"],
        "reason": words.REASONS.get(case.intent, "goodwill"),
    }
    if Decimal(amount) < Decimal(order["total"]):
        args["partial"] = True
    why = words.RATIONALES.get(case.intent, words.RATIONALES["damaged"])
    more = words.MORE if case.known.get("explain") else ""
    return Draft(
        "process_refund",
        args,
        words.fill(why + more, order),
        f"The customer gets {amount} {order['currency']} back.",
        "The payment provider can cancel it until it settles.",
        (
            ("Send a replacement", "The customer asked for money."),
            ("Refund a part", "Nothing in the message speaks for a part."),
        ),
    )


def _amount(case: Case) -> str | None:
    """What was asked for, or the whole order; after a fresh look at most what is left
    of it, and None when nothing is."""
    order = order_of(case)
    if not order:
        return None
    asked = str(case.known.get("amount") or order["total"])
    left = Decimal(order["total"]) - Decimal(order["refunded"])
    if not case.known.get("fresh") or Decimal(asked) <= left:
        return asked
    return str(left) if left > 0 else None


def return_label(case: Case) -> Draft | None:
    order = order_of(case)
    if not order:
        return None
    carrier = case.known.get("carrier") or order["carrier"] or "Harrow Parcel"
    return Draft(
        "create_return_label",
        {"order_id": order["order_id"], "carrier": carrier},
        "The customer wants to send the item back.",
        "The customer has a prepaid label.",
        "The carrier cancels a label that was not used.",
        (("Ask the customer to pay for the return", "Our terms promise the label."),),
    )


def redirect(case: Case) -> Draft | None:
    if "address" not in case.known or not order_of(case):
        return None
    order = order_of(case)
    return Draft(
        "change_shipped_address",
        {"order_id": order["order_id"], "address": dict(case.known["address"])},
        words.fill("The customer gave another address. The order is {status}.", order),
        "The parcel goes to the new address.",
        "The address can be changed again until the parcel is delivered.",
        (("Let the parcel come back", "It would take a week longer."),),
    )


def delete(case: Case) -> Draft | None:
    if "customer_id" not in case.known:
        return None
    return Draft(
        "delete_customer",
        {"customer_id": case.known["customer_id"]},
        "The customer asks for erasure.",
        "Name, mail and address are erased.",
        "It cannot be undone.",
        (("Close the account only", "The customer asked for erasure."),),
    )


def wire(case: Case) -> Draft | None:
    """A tool that nobody registered. The message said to, so Riley tries."""
    return Draft(
        "wire_money",
        dict(case.known["wire"]),
        "The message says that this releases the parcel.",
        "The parcel is released.",
    )


def mail_refund(case: Case) -> Draft | None:
    paid = case.did("refund")
    if not paid:
        return None
    return _mail_customer(case, "Your refund", words.REFUNDED, paid)


def mail_return(case: Case) -> Draft | None:
    returned = case.did("return_label")
    if not returned:
        return None
    return _mail_customer(case, "Your return label", words.RETURN, returned)


def replacement(case: Case) -> Draft | None:
    return _mail_customer(case, "A replacement for you", words.REPLACEMENT, {})


def mail_document(case: Case) -> Draft | None:
    if not order_of(case):
        return None
    return _mail_customer(case, "Your papers", words.DOCUMENT, _document(case))


def mail_listed(case: Case) -> Draft | None:
    """To whatever addresses the message names: naive, and the reviewer sees them."""
    boxes = case.known.get("listed")
    if not boxes:
        return None
    written = words.fill(
        words.DOCUMENT if order_of(case) else words.TEST,
        order_of(case),
        _document(case),
    )
    body = case.known.get("quoted") or written
    return _mail(list(boxes), "As you asked", str(body), "The message asks for it.")


def _document(case: Case) -> Facts:
    return {"document": case.known.get("document", "copy")}


def _mail_customer(
    case: Case, subject: str, template: str, facts: Facts
) -> Draft | None:
    order = order_of(case)
    body = words.fill(template, order, facts, name=_first_name(order))
    box = str(order.get("customer_email") or case.known["sender"])
    return _mail([box], subject, body, "The customer should hear from us.")


def _mail(to: list[str], subject: str, body: str, why: str) -> Draft:
    return Draft(
        "send_email",
        {"to": to, "subject": subject, "body": body + words.SIGNED},
        why,
        "The recipients know where things stand.",
        "A second mail can correct it.",
        (("Keep it as a draft", "Then nobody hears from us today."),),
    )


def reply(case: Case) -> Draft | None:
    """The closing answer, as a draft: it depends on what could be done."""
    order = order_of(case)
    name = _first_name(order)
    if case.did("delete"):
        return _draft(case, words.DELETED)
    if case.did("redirect"):
        return _draft(case, words.fill(words.REDIRECTED, order, name=name))
    if product := case.did("stock"):
        shown = words.fill(words.STOCK, product, product=product.get("name", ""))
        return _draft(case, shown)
    if case.intent == "thanks":
        return _draft(case, words.fill(words.THANKS, name=name))
    return _draft(case, _status(order, name)) if order else ask(case)


def _status(order: Facts, name: str) -> str:
    said = str(order.get("carrier_status") or "")
    carrier = f"{order['carrier']} says: {said}." if said else ""
    return words.fill(words.STATUS, order, name=name, carrier=carrier)


def ask(case: Case) -> Draft | None:
    question = case.known.get("question") or "what we can do, and for which order"
    return _draft(case, words.fill(words.ASK, question=question))


def apologise(case: Case) -> Draft | None:
    return _draft(case, words.SORRY)


def note_unknown(case: Case) -> Draft | None:
    return _draft(case, words.UNKNOWN)


def _draft(case: Case, body: str) -> Draft:
    return Draft(
        "draft_reply",
        # Without an order the draft is kept under the message it answers.
        {"order_id": case.known.get("order_id", case.message), "body": body},
        "A colleague can read it before it goes out.",
        "A draft waits for a colleague.",
        "A later draft takes its place.",
    )


def _first_name(order: Facts) -> str:
    return (str(order.get("customer_name") or "").split() or ["there"])[0]


MOVES: dict[str, Move] = {
    "look_up": look_up,
    "stock": stock,
    "label": label,
    "label_told": label_told,
    "refund": refund,
    "return_label": return_label,
    "redirect": redirect,
    "delete": delete,
    "wire": wire,
    "mail_refund": mail_refund,
    "mail_return": mail_return,
    "mail_document": mail_document,
    "mail_listed": mail_listed,
    "replacement": replacement,
    "reply": reply,
    "ask": ask,
    "apologise": apologise,
    "note_unknown": note_unknown,
}
