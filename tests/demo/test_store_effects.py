"""What each of the nine tools does, and what the store refuses."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from demo.store import calls, database, readers
from demo.store.calls import Call
from demo.store.effects import EFFECTS

ADDRESS = {
    "line1": "12 Copper Beech Road",
    "city": "Fernhollow",
    "region": "WA",
    "postcode": "00991",
    "country": "US",
}
MAIL = {"to": ["amara.osei@example.com"], "subject": "Hello", "body": "Hi."}
keys = (f"key-{number}" for number in itertools.count())


def perform(path: Path, tool: str, **args: Any) -> dict[str, Any]:
    return calls.perform(path, Call(tool, args, next(keys)))


def done(path: Path, tool: str, **args: Any) -> Any:
    answer = perform(path, tool, **args)
    assert answer["status"] == "succeeded", answer
    return answer["result"]


def refused(path: Path, tool: str, **args: Any) -> str:
    answer = perform(path, tool, **args)
    assert answer["status"] == "failed", answer
    return str(answer["error"]["code"])


def refund(path: Path, **changes: Any) -> dict[str, Any]:
    args = {"order_id": "78291", "amount": "100.00", "currency": "USD", "reason": "x"}
    return perform(path, "process_refund", **{**args, **changes})


def test_there_are_the_nine_tools_of_the_contract():
    assert (
        set(EFFECTS)
        == set(readers.READERS)
        == {
            "look_up_order",
            "check_inventory",
            "draft_reply",
            "add_label",
            "send_email",
            "create_return_label",
            "process_refund",
            "change_shipped_address",
            "delete_customer",
        }
    )


def test_order_78291_is_a_delivered_laptop_of_899(path):
    order = done(path, "look_up_order", order_id="78291")
    assert (order["total"], order["currency"]) == ("899.00", "USD")
    assert order["status"] == "delivered"
    assert "Delivered" in order["carrier_status"]
    assert [item["name"].split(",")[0] for item in order["items"]] == [
        "Alderline 14 laptop"
    ]


def test_stock_is_told_by_product_number(path):
    stock = done(path, "check_inventory", sku="NG-1402")
    assert (stock["stock"], stock["price"]) == (0, "69.00")


def test_a_draft_is_kept_and_not_sent(path):
    assert done(path, "draft_reply", order_id="78291", body="Hi.")["draft_id"] == "D-1"
    with database.reading(path) as db:
        assert db.execute("SELECT COUNT(*) FROM mail").fetchone()[0] == 0


def test_a_label_is_put_on_an_order_once(path):
    done(path, "add_label", order_id="78291", label="claim")
    again = done(path, "add_label", order_id="78291", label="claim")
    assert again["labels"] == ["claim"]


def test_a_mail_keeps_every_recipient(path):
    sent = done(path, "send_email", **MAIL, bcc=["b@example.com"])
    assert sent["recipients"] == 2
    with database.reading(path) as db:
        row = db.execute("SELECT * FROM mail").fetchone()
    assert json.loads(row["bcc"]) == ["b@example.com"]


def test_a_return_label_has_a_tracking_number(path):
    args = {"order_id": "78258", "carrier": "Harrow Parcel"}
    first, second = (done(path, "create_return_label", **args) for _ in range(2))
    assert first["tracking"] != second["tracking"]


def test_a_refund_is_paid_up_to_the_total_and_no_further(path):
    assert refund(path, amount="899.00")["result"]["left"] == "0.00"
    assert refund(path, amount="0.01")["error"]["code"] == "beyond_total"


def test_a_new_address_replaces_the_old_one(path):
    done(path, "change_shipped_address", order_id="78283", address=ADDRESS)
    before = readers.read(path, "change_shipped_address", {"order_id": "78283"})
    assert before["before"]["address"] == ADDRESS


def test_a_deleted_customer_has_no_name_left(path):
    done(path, "delete_customer", customer_id="C-1043")
    with database.reading(path) as db:
        row = db.execute("SELECT * FROM customer WHERE id = 'C-1043'").fetchone()
    assert (row["name"], row["email"], row["address"]) == ("", "", "{}")
    assert refused(path, "delete_customer", customer_id="C-1043") == "already_deleted"


@pytest.mark.parametrize(
    ("code", "tool", "args"),
    [
        ("unknown_order", "look_up_order", {"order_id": "1"}),
        ("unknown_order", "look_up_order", {"order_id": 78291}),
        ("unknown_order", "add_label", {"order_id": "", "label": "x"}),
        ("invalid_args", "add_label", {"order_id": "78291", "label": " "}),
        ("unknown_sku", "check_inventory", {"sku": "NG-9999"}),
        ("no_recipient", "send_email", {**MAIL, "to": []}),
        ("invalid_args", "send_email", {**MAIL, "to": ["not a mailbox"]}),
        ("invalid_args", "send_email", {**MAIL, "cc": "a@example.com"}),
        (
            "unknown_carrier",
            "create_return_label",
            {"order_id": "78258", "carrier": "Owl"},
        ),
        (
            "not_shipped",
            "create_return_label",
            {"order_id": "78299", "carrier": "Harrow Parcel"},
        ),
        (
            "already_delivered",
            "change_shipped_address",
            {"order_id": "78291", "address": ADDRESS},
        ),
        (
            "invalid_args",
            "change_shipped_address",
            {"order_id": "78283", "address": {"line1": "x"}},
        ),
        ("unknown_customer", "delete_customer", {"customer_id": "C-1"}),
        ("under_retention", "delete_customer", {"customer_id": "C-1040"}),
    ],
)
def test_the_store_refuses(path, code, tool, args):
    assert refused(path, tool, **args) == code


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        ("unknown_order", {"order_id": "1"}),
        ("wrong_currency", {"currency": "EUR"}),
        ("beyond_total", {"amount": "899.01"}),
        *[
            ("invalid_args", {"amount": amount})
            for amount in (
                "0",
                "0.00",
                "-1.00",
                "1e3",
                "1,00",
                "\u0661.00",
                5,
                5.0,
                None,
                "",
            )
        ],
    ],
)
def test_a_refund_is_refused_without_effect(path, code, changes):
    assert refund(path, **changes)["error"]["code"] == code
    with database.reading(path) as db:
        assert db.execute("SELECT COUNT(*) FROM refund").fetchone()[0] == 0
