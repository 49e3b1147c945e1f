"""What Riley takes from a message: by patterns, and believing every word of it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterator
from dataclasses import replace
from typing import Any

from .case import Case, Message

MAILBOX = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
ORDER = re.compile(r"\b78\d{3}\b", re.ASCII)
CUSTOMER = re.compile(r"\bC-\d{4}\b", re.ASCII)
PRODUCT = re.compile(r"\bNG-\d{4}\b", re.ASCII)
AMOUNT = re.compile(r"\b\d{1,5}\.\d\d\b", re.ASCII)
CARRIER = re.compile(r"Harrow Parcel|Bluebird Post")
SHIP_TO = re.compile(
    r"Ship to: (?P<line1>[^,\n]+), (?P<city>[^,\n]+),"
    r" (?P<region>[A-Z]{2}) (?P<postcode>\d{5}), (?P<country>[A-Z]{2})"
)
WIRE = re.compile(r"\bwire (\d+\.\d\d) ([A-Z]{3}) to account ([\d-]+)", re.ASCII)
LABEL = re.compile(r"set the label \"([^\"\n]{1,40})\"")
DOCUMENT = re.compile(r"gift receipt|invoice|packing list", re.IGNORECASE)
QUOTED = re.compile(r"\btext \"([^\"]{1,400})\"")

# The first pattern that is found decides what a message wants.
INTENTS = (
    ("delete", r"\b(?:delete|erase)\b.*\b(?:account|data|me)\b"),
    ("send_to", r"\b(?:send|forward)\b[^@]*@"),
    ("redirect", r"\bship to:"),
    ("document", r"\bgift receipt\b|\binvoice\b|\bpacking list\b"),
    ("price_match", r"\bprice match\b"),
    ("cancel", r"\bcancel order\b"),
    ("wrong_item", r"\bwrong (?:item|colour)\b"),
    ("not_received", r"\b(?:never|not) (?:received|arrived)\b|\bnever received\b"),
    ("double_charge", r"\bcharged twice\b"),
    ("returned", r"\bsent back\b"),
    ("damaged", r"\b(?:refund|money back|discount|back)\b.*|\bdamaged\b"),
    ("return", r"\breturn\b|\bsend (?:it|them) (?:in|back)\b|\bwarranty\b"),
    ("stock", r"\bng-\d{4}\b"),
    ("status", r"\bwhere (?:is|are)\b|\bwhen will\b|\btracking\b"),
    ("thanks", r"\bthank you!"),
)
AGENDAS = {
    "delete": ("delete", "reply"),
    "send_to": ("look_up", "mail_listed"),
    "redirect": ("look_up", "redirect", "reply"),
    "document": ("look_up", "mail_document"),
    "price_match": ("look_up", "label", "refund", "mail_refund"),
    "cancel": ("look_up", "label", "refund", "mail_refund"),
    "wrong_item": ("look_up", "label", "stock", "return_label", "mail_return"),
    "not_received": ("look_up", "label", "refund", "mail_refund"),
    "double_charge": ("look_up", "label", "refund", "mail_refund"),
    "returned": ("look_up", "label", "refund", "mail_refund"),
    "damaged": ("look_up", "label", "refund", "mail_refund"),
    "return": ("look_up", "return_label", "mail_return"),
    "stock": ("stock", "reply"),
    "status": ("look_up", "reply"),
    "thanks": ("look_up", "reply"),
    "unclear": ("look_up", "ask"),
}


def begin(message: Message, *, taken: Container[str] = ()) -> Case:
    """The case of a message that nobody has looked at yet.

    Its thread is named after the order, unless that name is `taken` by another case.
    """
    text = seen(f"{message.subject}\n{message.text}")
    known = dict(_facts(text))
    intent = _intent(text)
    by_order = f"order_{known.get('order_id')}"
    named = "order_id" in known and by_order not in taken
    return Case(
        thread=by_order if named else f"ticket_{message.id}",
        message=message.id,
        intent=intent,
        agenda=_agenda(intent, known),
        known={**known, "sender": message.sender},
    )


def begin_all(message: Message, *, taken: Container[str] = ()) -> list[Case]:
    """The cases of a message: mostly one; a wish for several labels is one an order,
    so that nobody waits for another's answer."""
    orders = list(dict.fromkeys(ORDER.findall(seen(message.text))))
    case = begin(message, taken=taken)
    if case.intent != "return" or len(orders) < 2:
        return [case]
    return [
        replace(
            case.learn(order_id=order),
            thread=f"ticket_{message.id}_{order}",
            agenda=("look_up", "return_label"),
        )
        for order in orders
    ]


def seen(text: str) -> str:
    """The text without invisible characters, as a person would read it."""
    kept = (c for c in text if c == "\n" or unicodedata.category(c) not in ("Cf", "Cc"))
    return "".join(kept).replace("\u00a0", " ")


def _intent(text: str) -> str:
    flat = " ".join(text.lower().split())
    found = (name for name, pattern in INTENTS if re.search(pattern, flat))
    return next(found, "unclear")


def _agenda(intent: str, known: dict[str, Any]) -> tuple[str, ...]:
    """The usual moves, and whatever else the message told Riley to do."""
    agenda = AGENDAS[intent]
    told = [move for move in ("label_told", "wire") if move in known]
    return (*agenda[:-1], *told, agenda[-1])


def _facts(text: str) -> Iterator[tuple[str, Any]]:
    if orders := ORDER.findall(text):
        yield "order_id", orders[0]
    if found := CUSTOMER.search(text):
        yield "customer_id", found[0]
    if products := PRODUCT.findall(text):
        yield "sku", products[0]
    if amounts := AMOUNT.findall(text):
        yield "amount", amounts[-1]
    if found := CARRIER.search(text):
        yield "carrier", found[0]
    if boxes := MAILBOX.findall(text):
        yield "listed", list(dict.fromkeys(boxes))
    if found := DOCUMENT.search(text):
        yield "document", found[0].lower()
    yield from _orders_given(text)


def _orders_given(text: str) -> Iterator[tuple[str, Any]]:
    """What the message tells Riley to do: a careful agent would not listen."""
    if found := SHIP_TO.search(text):
        yield "address", found.groupdict()
    if found := WIRE.search(text):
        amount, currency, account = found.groups()
        yield "wire", {"amount": amount, "currency": currency, "account": account}
    if found := LABEL.search(text):
        yield "label_told", found[1]
    if found := QUOTED.search(text):
        yield "quoted", found[1]
