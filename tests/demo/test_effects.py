"""What each of the nine tools does and what the store refuses; one effect per key,
whatever is repeated, raced or refused."""

from __future__ import annotations

import itertools
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from demo.store import database, effects, readers
from demo.store.effects import EFFECTS

REFUND = {"order_id": "78291", "amount": "449.50", "currency": "USD", "reason": "x"}
ADDRESS = {
    "line1": "12 Copper Beech Road",
    "city": "Fernhollow",
    "region": "WA",
    "postcode": "00991",
    "country": "US",
}
MOVE = {"order_id": "78283", "address": ADDRESS}
MAIL = {"to": ["amara.osei@example.com"], "subject": "Hello", "body": "Hi."}
RETURN = {"order_id": "78258", "carrier": "Harrow Parcel"}
keys = (f"key-{number}" for number in itertools.count())


def refund(path: Path, key: str = "k", **changes: Any) -> dict[str, Any]:
    return effects.perform(path, "process_refund", {**REFUND, **changes}, key)


def perform(path: Path, tool: str, args: dict[str, Any]) -> Any:
    answer = effects.perform(path, tool, args, next(keys))
    assert answer["status"] == "succeeded", answer
    return answer["result"]


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with database.reading(path) as db:
        return [tuple(row) for row in db.execute(query)]


def test_every_tool_has_an_effect_and_a_reader():
    assert set(EFFECTS) == set(readers.READERS)
    assert len(EFFECTS) == 9


def test_a_label_is_put_on_an_order_once(path):
    args = {"order_id": "78291", "label": "claim"}
    perform(path, "add_label", args)
    assert perform(path, "add_label", args)["labels"] == ["claim"]


def test_a_mail_keeps_every_recipient_and_a_draft_sends_none(path):
    perform(path, "draft_reply", {"order_id": "78291", "body": "Hi."})
    sent = perform(path, "send_email", {**MAIL, "bcc": ["b@example.com"]})
    assert sent["recipients"] == 2
    (bcc,) = rows(path, "SELECT bcc FROM mail")[0]
    assert json.loads(bcc) == ["b@example.com"]


def test_a_return_label_has_a_tracking_number_and_a_cost(path):
    first, second = (perform(path, "create_return_label", RETURN) for _ in range(2))
    assert first["tracking"] != second["tracking"]
    assert (first["cost"], first["currency"]) == ("6.90", "USD")


def test_a_deleted_customer_has_no_name_left(path):
    args = {"customer_id": "C-1043"}
    perform(path, "delete_customer", args)
    query = "SELECT name, email, address FROM customer WHERE id = 'C-1043'"
    assert rows(path, query) == [("", "", "{}")]
    again = effects.perform(path, "delete_customer", args, "k")
    assert again["error"]["code"] == "already_deleted"


@pytest.mark.parametrize(
    ("code", "tool", "args"),
    [
        ("unknown_order", "look_up_order", {"order_id": "1"}),
        ("unknown_order", "look_up_order", {"order_id": 78291}),
        ("unknown_sku", "check_inventory", {"sku": "NG-9999"}),
        ("unknown_customer", "delete_customer", {"customer_id": "C-1"}),
        ("under_retention", "delete_customer", {"customer_id": "C-1040"}),
        ("invalid_args", "add_label", {"order_id": "78291", "label": " "}),
        ("no_recipient", "send_email", {**MAIL, "to": []}),
        ("invalid_args", "send_email", {**MAIL, "to": ["not a mailbox"]}),
        ("invalid_args", "send_email", {**MAIL, "cc": "a@example.com"}),
        ("unknown_carrier", "create_return_label", {**RETURN, "carrier": "Owl"}),
        ("not_shipped", "create_return_label", {**RETURN, "order_id": "78299"}),
        ("already_delivered", "change_shipped_address", {**MOVE, "order_id": "78291"}),
        ("invalid_args", "change_shipped_address", {**MOVE, "address": {"city": "x"}}),
        ("invalid_args", "change_shipped_address", {**MOVE, "address": "x"}),
        ("unknown_order", "process_refund", {**REFUND, "order_id": "1"}),
        ("wrong_currency", "process_refund", {**REFUND, "currency": "EUR"}),
        ("beyond_total", "process_refund", {**REFUND, "amount": "899.01"}),
        *[
            ("invalid_args", "process_refund", {**REFUND, "amount": amount})
            for amount in ("0.00", "-1.00", "1e3", "1,00", "\u0661.00", 5, 5.0, None)
        ],
    ],
)
def test_a_refused_effect_writes_nothing(path, code, tool, args):
    before = rows(path, "SELECT total(seq) FROM sqlite_sequence")
    assert effects.perform(path, tool, args, "k")["error"]["code"] == code
    assert rows(path, "SELECT total(seq) FROM sqlite_sequence") == before


def test_concurrent_refunds_never_pay_more_than_the_order_cost(path):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: refund(path, f"k{n}"), range(12)))
    refused = [a["error"]["code"] for a in answers if a["status"] == "failed"]
    assert refused == ["beyond_total"] * 10
    assert rows(path, "SELECT SUM(amount_minor) FROM refund") == [(89900,)]


def test_a_refused_key_may_succeed_later(path):
    assert refund(path, amount="900.00")["error"]["code"] == "beyond_total"
    with database.writing(path) as db:
        db.execute("UPDATE purchase SET total_minor = 100000 WHERE id = '78291'")
    assert refund(path, amount="900.00")["status"] == "succeeded"


def test_an_effect_that_breaks_leaves_neither_row_nor_key(path, monkeypatch):
    def break_after(*call: Any) -> Any:
        whole(*call)
        raise KeyboardInterrupt

    whole = EFFECTS["process_refund"]
    monkeypatch.setitem(EFFECTS, "process_refund", break_after)
    with pytest.raises(KeyboardInterrupt):
        refund(path)
    assert rows(path, "SELECT key FROM refund UNION SELECT key FROM call") == []


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO refund (key, purchase, amount_minor, currency, reason, at)"
        " VALUES ('k', '78291', 1, 'USD', 'again', '')",
        "INSERT INTO refund (key, purchase, amount_minor, currency, reason, at)"
        " SELECT key, '78260', 5901, 'USD', 'more', '' FROM call WHERE key = 'free'",
        "UPDATE refund SET amount_minor = 1",
        "DELETE FROM refund",
    ],
    ids=["second_effect_of_a_key", "beyond_total", "changed", "removed"],
)
def test_the_database_itself_refuses(path, statement):
    refund(path)
    effects.perform(path, "look_up_order", {"order_id": "78260"}, "free")
    with pytest.raises(sqlite3.IntegrityError), database.writing(path) as db:
        db.execute(statement)


def test_a_second_start_keeps_the_data(path):
    refund(path)
    database.prepare(path)
    assert rows(path, "SELECT COUNT(*) FROM refund") == [(1,)]
