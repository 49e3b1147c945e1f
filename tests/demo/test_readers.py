"""What the gate learns from the store before anybody decides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from demo.store import database, effects, readers
from demo.store.effects import EFFECTS
from tests.demo.test_effects import ADDRESS, MAIL, REFUND

# What each tool is given, and the fields of its reader that its effect then changes.
EXAMPLES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "look_up_order": ({"order_id": "78291"}, set()),
    "check_inventory": ({"sku": "NG-1001"}, set()),
    "draft_reply": ({"order_id": "78291", "body": "Hello"}, {"drafts"}),
    "add_label": ({"order_id": "78291", "label": "claim"}, {"labels"}),
    "send_email": (MAIL, {"mails_before"}),
    "create_return_label": (
        {"order_id": "78291", "carrier": "Bluebird Post"},
        {"return_labels"},
    ),
    "process_refund": (REFUND, {"order_refunded"}),
    "change_shipped_address": ({"order_id": "78298", "address": ADDRESS}, {"address"}),
    "delete_customer": ({"customer_id": "C-1043"}, {"name", "email", "address"}),
}


def facts(path: Path, tool: str, **args: Any) -> dict[str, Any]:
    facts: dict[str, Any] = readers.read(path, tool, args)["facts"]
    return facts


def test_a_refund_sees_total_refunds_delivery_payee_and_keys(path):
    effects.perform(path, "process_refund", REFUND, "k")
    reading = readers.read(path, "process_refund", REFUND)
    assert reading["keys"] == {"customer": "C-1017", "order": "78291"}
    assert reading["facts"] == {
        "order_total": "899.00",
        "order_total_currency": "USD",
        "order_refunded": "449.50",
        "order_refunded_currency": "USD",
        "order_kept": "449.50",
        "order_kept_currency": "USD",
        "delivered": True,
        "shipped": True,
        "parcel": "Delivered",
        "carrier_status": "Delivered, left at front door",
        "customer_name": "Casey Lindholm",
        "payment_method": "Mastercard ending 8623",
        "destination": "Larkhaven, OH",
    }
    assert reading["before"]["order_refunded"] == "449.50 USD"
    assert reading["preconditions"] == {"order_version": 2}


@pytest.mark.parametrize("tool", sorted(EFFECTS))
def test_a_reader_shows_everything_that_its_effect_changes(path, tool):
    args, changed = EXAMPLES[tool]
    reading, tables = readers.read(path, tool, args), dump(path)
    answer = effects.perform(path, tool, args, "k")
    assert answer["status"] == "succeeded", answer
    before = reading["before"] or {}
    after = readers.read(path, tool, args)["before"] or {}
    assert {field for field in before if before[field] != after[field]} == changed
    assert (dump(path) == tables) is (not changed)
    assert set(before) <= set(reading["labels"]) <= {*before, *reading["facts"]}


def dump(path: Path) -> list[str]:
    """The store's rows, without those of its idempotency keys."""
    with database.reading(path) as db:
        return [line for line in db.iterdump() if 'INTO "call"' not in line]


@pytest.mark.parametrize(
    "tool", ["process_refund", "change_shipped_address", "delete_customer"]
)
def test_what_does_not_exist_gives_no_key(path, tool):
    reading = readers.read(path, tool, {"order_id": "1", "customer_id": "C-1"})
    assert reading["keys"] == {}
    assert reading["before"] is None


def test_a_label_does_not_outdate_a_refund_that_waits(path):
    before = readers.read(path, "process_refund", REFUND)["preconditions"]
    effects.perform(path, "add_label", {"order_id": "78291", "label": "x"}, "k")
    assert readers.read(path, "process_refund", REFUND)["preconditions"] == before


def test_a_return_label_has_a_cost_where_the_carrier_is_known(path):
    args = {"order_id": "78291", "carrier": "Bluebird Post"}
    known = facts(path, "create_return_label", **args)
    assert (known["label_cost"], known["label_cost_currency"]) == ("5.40", "USD")
    args["carrier"] = "Somebody"
    assert "label_cost" not in facts(path, "create_return_label", **args)
