"""What the gate is told before anybody decides."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from demo.store import calls, database, readers
from demo.store.calls import Call
from demo.store.effects import EFFECTS


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
    assert set(reading["before"] or {}) <= set(reading["labels"])
    assert set(reading["labels"]) <= {*(reading["before"] or {}), *reading["facts"]}
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


def test_deleting_sees_the_address_as_it_is_written_and_the_whole_moment(path):
    reading = readers.read(path, "delete_customer", {"customer_id": "C-1043"})
    assert reading["labels"]["address"] == "Address"
    assert reading["before"]["address"] == "211 Summit Avenue, Redfern, CO, 00809, US"
    assert reading["facts"]["retention_until"].endswith("Z")


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


# Which field of the reader shows what an effect writes: a column that it changes, or a
# table that it adds a row to. Idempotency keys, versions and times are bookkeeping, and
# so are the store's own notes of redirections and deletions.
SHOWN_AS = {
    "customer.name": "name",
    "customer.email": "email",
    "customer.address": "address",
    "purchase.address": "address",
    "refund": "order_refunded",
    "tag": "labels",
    "mail": "mails_before",
    "return_label": "return_labels",
    "draft": "drafts",
}
BOOKKEEPING = {"call", "redirection", "deletion", "version", "deleted_at"}
REFUND = {"order_id": "78291", "amount": "49.00", "currency": "USD", "reason": "x"}
ADDRESS = {
    "line1": "12 Copper Beech Road",
    "city": "Fernhollow",
    "region": "WA",
    "postcode": "00991",
    "country": "US",
}
EXAMPLES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "look_up_order": ({"order_id": "78291"}, set()),
    "check_inventory": ({"sku": "NG-1001"}, set()),
    "draft_reply": ({"order_id": "78291", "body": "Hello"}, {"draft"}),
    "add_label": ({"order_id": "78291", "label": "claim"}, {"tag"}),
    "send_email": (
        {"to": ["amara.osei@example.com"], "subject": "Hi", "body": "Hello"},
        {"mail"},
    ),
    "create_return_label": (
        {"order_id": "78291", "carrier": "Harrow Parcel"},
        {"return_label"},
    ),
    "process_refund": (REFUND, {"refund"}),
    "change_shipped_address": (
        {"order_id": "78298", "address": ADDRESS},
        {"purchase.address"},
    ),
    "delete_customer": (
        {"customer_id": "C-1043"},
        {"customer.name", "customer.email", "customer.address"},
    ),
}


@pytest.mark.parametrize("tool", sorted(EFFECTS))
def test_a_reader_shows_everything_that_its_effect_changes(path, tool):
    args, expected = EXAMPLES[tool]
    rows, shown = _rows(path), readers.read(path, tool, args)["before"] or {}
    answer = calls.perform(path, Call(tool, args, "k"))
    assert answer["status"] == "succeeded", answer
    written = _written(rows, _rows(path))
    assert written == expected
    after = readers.read(path, tool, args)["before"] or {}
    fields = {SHOWN_AS[place] for place in written}
    assert fields <= set(shown)
    assert all(shown[field] != after[field] for field in fields)


def _rows(path: Path) -> dict[tuple[str, Any], dict[str, Any]]:
    """Every row of the store by table and number."""
    with database.reading(path) as db:
        names = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        tables = [row["name"] for row in db.execute(names)]
        return {
            (table, row["rowid"]): dict(row)
            for table in tables
            if table not in BOOKKEEPING and not table.startswith("sqlite_")
            for row in db.execute(f"SELECT rowid AS rowid, * FROM {table}")
        }


def _written(
    was: dict[tuple[str, Any], dict[str, Any]], now: dict[tuple[str, Any], Any]
) -> set[str]:
    """The columns that changed, and the tables that got a row."""
    assert was.keys() <= now.keys()
    added = {table for table, _ in now.keys() - was.keys()}
    return added | {
        f"{table}.{column}"
        for (table, number), row in was.items()
        for column, value in row.items()
        if now[table, number][column] != value and column not in BOOKKEEPING
    }


def test_a_store_of_the_first_version_learns_how_orders_were_paid(path):
    with database.writing(path) as db:
        db.execute("ALTER TABLE purchase DROP COLUMN payment")
        db.execute("ALTER TABLE return_label DROP COLUMN cost_minor")
        db.execute("PRAGMA user_version = 1")
    database.prepare(path)
    reading = readers.read(path, "process_refund", REFUND)
    assert reading["facts"]["payment_method"] == "Mastercard ending 8623"
    label = Call("create_return_label", EXAMPLES["create_return_label"][0], "k")
    assert calls.perform(path, label)["result"]["cost"] == "6.90"


def test_a_return_label_has_a_cost_before_it_is_ordered(path):
    known = {"order_id": "78291", "carrier": "Bluebird Post"}
    facts = readers.read(path, "create_return_label", known)["facts"]
    assert (facts["label_cost"], facts["label_cost_currency"]) == ("5.40", "USD")
    other = {**known, "carrier": "Somebody"}
    assert "label_cost" not in readers.read(path, "create_return_label", other)["facts"]


def test_a_change_of_address_reads_whose_account_it_is(path):
    reading = readers.read(path, "change_shipped_address", {"order_id": "78283"})
    assert reading["before"]["customer_email"] == "farah.siddiqui@example.org"
    assert reading["labels"]["customer_email"] == "E-mail of the account"


def test_a_refund_reads_its_payee_and_how_it_is_paid(path):
    facts = readers.read(path, "process_refund", REFUND)["facts"]
    assert facts["customer_name"] == "Casey Lindholm"
    assert facts["payment_method"] == "Mastercard ending 8623"
    assert facts["parcel"] == "Delivered"
