"""One effect per idempotency key, whatever is repeated, raced or refused."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from demo.store import calls, database, effects
from demo.store.calls import Call

REFUND = {
    "order_id": "78291",
    "amount": "449.50",
    "currency": "USD",
    "reason": "not_received",
}


def refund(key: str, **changes: Any) -> Call:
    return Call("process_refund", {**REFUND, **changes}, key)


def rows(path: Path, query: str) -> list[tuple[Any, ...]]:
    with database.reading(path) as db:
        return [tuple(row) for row in db.execute(query)]


def test_a_repeated_key_gets_the_stored_answer_and_moves_money_once(path):
    answers = [calls.perform(path, refund("k")) for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["status"] == "succeeded"
    assert rows(path, "SELECT amount_minor FROM refund") == [(44950,)]
    assert rows(path, "SELECT received FROM call") == [(3,)]


def test_concurrent_calls_of_one_key_move_money_once(path):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: calls.perform(path, refund("k")), range(24)))
    assert all(answer == answers[0] for answer in answers)
    assert rows(path, "SELECT COUNT(*) FROM refund") == [(1,)]
    assert rows(path, "SELECT received FROM call") == [(24,)]


def test_concurrent_refunds_never_pay_more_than_the_order_cost(path):
    keys = [f"k{number}" for number in range(12)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda key: calls.perform(path, refund(key)), keys))
    paid = [answer for answer in answers if answer["status"] == "succeeded"]
    assert len(paid) == 2
    assert rows(path, "SELECT SUM(amount_minor) FROM refund") == [(89900,)]
    refused = {a["error"]["code"] for a in answers if a["status"] == "failed"}
    assert refused == {"beyond_total"}


def test_a_key_that_comes_with_other_arguments_does_nothing(path):
    calls.perform(path, refund("k"))
    with pytest.raises(calls.KeyReused):
        calls.perform(path, refund("k", amount="1.00"))
    assert rows(path, "SELECT received FROM call") == [(1,)]


def test_a_refused_key_may_succeed_later(path):
    calls.perform(path, refund("first"))
    too_much = refund("second", amount="500.00")
    assert calls.perform(path, too_much)["error"]["code"] == "beyond_total"
    with database.writing(path) as db:
        db.execute("UPDATE purchase SET total_minor = 100000 WHERE id = '78291'")
    assert calls.perform(path, too_much)["status"] == "succeeded"


def test_a_look_up_tells_what_became_of_a_key(path):
    answer = calls.perform(path, refund("k"))
    assert calls.look_up(path, "process_refund", "k") == answer
    assert calls.look_up(path, "process_refund", "other") == {"status": "not_found"}
    assert calls.look_up(path, "add_label", "k") == {"status": "not_found"}


def test_an_effect_that_breaks_leaves_neither_row_nor_key(path, monkeypatch):
    def half(db: sqlite3.Connection, args: Any, mark: Any) -> Any:
        whole(db, args, mark)
        raise KeyboardInterrupt

    whole = effects.EFFECTS["process_refund"]
    monkeypatch.setitem(effects.EFFECTS, "process_refund", half)
    with pytest.raises(KeyboardInterrupt):
        calls.perform(path, refund("k"))
    assert rows(path, "SELECT * FROM refund") == []
    assert rows(path, "SELECT * FROM call") == []


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
    calls.perform(path, refund("k"))
    calls.perform(path, Call("look_up_order", {"order_id": "78260"}, "free"))
    with pytest.raises(sqlite3.IntegrityError), database.writing(path) as db:
        db.execute(statement)


def test_a_second_start_keeps_the_data(path):
    calls.perform(path, refund("k"))
    database.prepare(path)
    assert rows(path, "SELECT COUNT(*) FROM refund") == [(1,)]
