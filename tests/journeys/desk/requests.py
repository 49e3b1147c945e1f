"""What the agent asks for in the journeys."""

from __future__ import annotations

from typing import Any

from reviews.models import ApprovalRequest
from tests.journeys.desk.house import House

OWN = "northgate-electronics.example"
MAIL: dict[str, Any] = {
    "to": [f"desk@{OWN}", f"billing@{OWN}", "casey@mail.example"],
    "subject": "Your order 78291",
    "body": "The carrier will call you on Tuesday.",
}
LABEL = {"order_id": "78291", "label": "carrier claim"}
PAYMENT = {
    "amount": "480.00",
    "currency": "USD",
    "payee": "Harrow Parts",
    "by": "transfer",
    "due_on": "2026-12-15",
}


def mail(house: House) -> ApprovalRequest:
    """Three recipients, one of them outside: High by its class, with a reason."""
    return house.asks("send_email", MAIL)


def label(house: House) -> ApprovalRequest:
    """Announced at most, were the agent sure of it."""
    return house.asks("add_label", LABEL, uncertain=True)


def payment(house: House, **args: Any) -> ApprovalRequest:
    """High, without a reason, and within what a reviewer may decide."""
    return house.asks("pay_supplier", {**PAYMENT, **args})
