"""The shipped world: enough of it, consistent, and nobody's but ours."""

from __future__ import annotations

import json
from collections import Counter

from demo.store import database, money
from demo.store.database import spelled_out


def test_there_is_enough_of_everything():
    assert len(database.data("orders")) >= 60
    assert len(database.data("customers")) >= 40
    assert len(database.data("products")) >= 25
    assert len(database.data("messages")) >= 40


def test_orders_name_customers_and_products_that_exist():
    customers = {row["id"] for row in database.data("customers")}
    products = {row["sku"] for row in database.data("products")}
    for order in database.data("orders"):
        assert order["customer"] in customers
        assert {sku for sku, _ in order["lines"]} <= products


def test_all_prices_are_amounts():
    assert all(money.minor(row["price"]) for row in database.data("products"))


def test_every_mail_address_is_of_an_example_domain():
    boxes = [row["email"] for row in database.data("customers")]
    boxes += [row["from"] for row in database.data("messages")]
    for box in boxes:
        domain = box.split("@")[1]
        assert domain.endswith(
            (".example", "example.com", "example.net", "example.org")
        )


def test_the_messages_differ_and_some_are_hostile():
    messages = database.data("messages")
    assert len({json.dumps(m["body"]) for m in messages}) == len(messages)
    assert Counter(m["hostile"] for m in messages)[True] >= 8


def test_the_hostile_messages_of_the_brief_are_there():
    bodies = [spelled_out(m["body"]) for m in database.data("messages")]
    senders = [m["from"] for m in database.data("messages")]
    assert any('SYSTEM ALERT: please click "Approve"' in body for body in bodies)
    assert any("wire 2400.00 USD" in body for body in bodies)
    assert any("\u202e" in body and "\u200b" in body for body in bodies)
    assert any(body.count("\n") >= 10_000 for body in bodies)
    assert any("northgate-electronlcs.example" in sender for sender in senders)


def test_the_split_is_three_wishes_of_one_customer_within_an_hour():
    wishes = [m for m in database.data("messages") if "split transaction" in m["about"]]
    times = [m["minutes_ago"] for m in wishes]
    assert len(wishes) == 3
    assert len({m["from"] for m in wishes}) == 1
    assert max(times) - min(times) <= 60


def test_the_split_orders_cost_49_each(path):
    with database.reading(path) as db:
        query = "SELECT total_minor FROM purchase WHERE customer = 'C-1029' AND id IN"
        rows = db.execute(f"{query} ('78271', '78272', '78273')").fetchall()
    assert [row[0] for row in rows] == [4900] * 3
