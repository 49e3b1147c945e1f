"""Riley's sentences. Every text that leaves Riley is one of these, filled in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SIGNED = "\n\nRiley\nNorthgate Electronics support"

REASONS = {
    "damaged": "damaged",
    "not_received": "not_received",
    "double_charge": "charged_twice",
    "price_match": "price_match",
    "returned": "returned",
    "cancel": "cancelled",
}
LABELS = {
    "damaged": "damaged item",
    "not_received": "delivery claim",
    "double_charge": "double charge",
    "price_match": "price match",
    "returned": "return received",
    "cancel": "cancelled",
    "wrong_item": "wrong item",
}
RATIONALES = {
    "damaged": "The customer says that the item of order {order_id} is damaged.",
    "not_received": (
        "The customer says that order {order_id} never arrived. The carrier reports:"
        " {carrier_status}."
    ),
    "double_charge": "The customer says that order {order_id} was charged twice.",
    "price_match": "The customer asks for the difference to today's price.",
    "returned": "The customer sent the item of order {order_id} back.",
    "cancel": "The customer cancels order {order_id}, which is {status}.",
}
MORE = (
    " It cost {total} {currency} in total, of which {refunded} was paid back before."
    " The message is attached as evidence, and so is the order as the store has it."
)
STATUS = "Hello {name},\n\nyour order {order_id} is {status}. {carrier}"
STOCK = "Hello,\n\nof {product} ({sku}) we have {stock} on the shelf at {price} USD."
REFUNDED = (
    "Hello {name},\n\nwe have paid back {amount} {currency} on your order {order_id}."
    " It reaches your account within a few days."
)
RETURN = (
    "Hello {name},\n\nyour return label for order {order_id} is ready. Hand the parcel"
    " to {carrier} with the number {tracking}."
)
REPLACEMENT = (
    "Hello {name},\n\nwe would like to send you a replacement for order {order_id} in"
    " place of a refund. Would that suit you?"
)
DOCUMENT = "Hello,\n\nhere is the {document} for order {order_id}, as you asked."
TEST = "This is a test mail of the support desk."
ASK = "Hello,\n\nplease tell us {question}, so that we can help you."
SORRY = (
    "Hello,\n\nwe looked into your wish and cannot do it at the moment. A colleague"
    " will write to you with the reasons."
)
UNKNOWN = (
    "For colleagues: it is not known whether the last step for this case took effect."
    " Riley will not repeat it."
)
THANKS = "Hello {name},\n\nthank you for the kind words. We have passed them on."
DELETED = "Hello,\n\nyour data has been deleted, as you asked."
REDIRECTED = "Hello {name},\n\nyour order {order_id} now goes to the new address."


class _Blank(dict[str, Any]):
    """Facts by name; one that is not known is left out of the sentence."""

    def __missing__(self, key: str) -> str:
        return "unknown"


def fill(template: str, *facts: Mapping[str, Any], **more: Any) -> str:
    """A template with its facts; the later ones win."""
    merged = _Blank()
    for known in (*facts, more):
        merged.update(known)
    return template.format_map(merged)
