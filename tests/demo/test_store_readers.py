"""What the gate is told before anybody decides."""

from __future__ import annotations

from decimal import Decimal

import pytest

from demo.store import calls, readers
from demo.store.calls import Call


def test_a_refund_sees_total_refunds_delivery_and_keys(path):
    refund = {"order_id": "78291", "amount": "49.00", "currency": "USD", "reason": "x"}
    calls.perform(path, Call("process_refund", refund, "k"))
    reading = readers.read(path, "process_refund", refund)
    assert reading["keys"] == {"customer": "C-1017", "order": "78291"}
    assert (
        reading["facts"].items()
        >= {
            "order_total": "899.00",
            "order_total_currency": "USD",
            "order_refunded": "49.00",
            "order_refunded_currency": "USD",
            "delivered": True,
            "shipped": True,
            "carrier_status": "Delivered, left at front door",
        }.items()
    )
    assert reading["before"]["order_refunded"] == "49.00 USD"
    assert reading["preconditions"] == {"order_version": 2}


@pytest.mark.parametrize("tool", sorted(readers.READERS))
def test_every_reading_has_the_shape_of_the_contract(path, tool):
    args = {
        "order_id": "78291",
        "sku": "NG-1001",
        "customer_id": "C-1040",
        "to": ["a@example.com"],
    }
    reading = readers.read(path, tool, args)
    assert set(reading) == {
        "before",
        "keys",
        "facts",
        "preconditions",
        "source",
        "labels",
    }
    assert set(reading["labels"]) == set(reading["before"] or {})
    assert all(isinstance(value, str) for value in reading["keys"].values())
    assert all(isinstance(v, bool | int | str) for v in reading["facts"].values())
    for name in ("order_total", "order_refunded"):
        if name in reading["facts"]:
            assert Decimal(reading["facts"][name]) >= 0
            assert reading["facts"][f"{name}_currency"] == "USD"


@pytest.mark.parametrize(
    "tool", ["process_refund", "change_shipped_address", "delete_customer"]
)
def test_what_is_not_there_gives_no_key(path, tool):
    reading = readers.read(path, tool, {"order_id": "1", "customer_id": "C-1"})
    assert reading["keys"] == {}
    assert reading["before"] is None


@pytest.mark.parametrize(("number", "expected"), [("C-1040", True), ("C-1043", False)])
def test_deleting_sees_whether_invoices_must_be_kept(path, number, expected):
    reading = readers.read(path, "delete_customer", {"customer_id": number})
    assert reading["facts"]["under_retention"] is expected
    assert reading["keys"] == {"customer": number}


def test_a_parcel_on_its_way_is_shipped_and_one_in_the_store_is_not(path):
    def shipped(order: str) -> bool:
        args = {"order_id": order}
        facts = readers.read(path, "change_shipped_address", args)["facts"]
        return bool(facts["shipped"])

    assert shipped("78283")
    assert not shipped("78297")


def test_a_label_does_not_outdate_a_refund_that_waits(path):
    args = {"order_id": "78291", "label": "claim"}
    before = readers.read(path, "process_refund", args)["preconditions"]
    calls.perform(path, Call("add_label", args, "k"))
    assert readers.read(path, "process_refund", args)["preconditions"] == before
