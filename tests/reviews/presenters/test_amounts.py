"""What an action moves in all: money in lists, and money that only the reader knows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from reviews.presenters import present_effect
from reviews.presenters.shapes import SizeFigure
from tests.policies.test_amounts import KNOWN, PRICE, order

ITEMS = [
    {"price": "1000.00", "currency": "USD"},
    {"price": "250.00", "currency": "USD"},
]
BEFORE = {"order_total": 89900, "order_total_currency": "USD"}


def show(*declared, args=None, known=None, windows=None, **parts):
    tool = order(*declared, **parts).tools["pay"]
    given = args or {"items": ITEMS}
    return present_effect(tool, given, facts=known or {}, windows=windows)


def test_money_in_a_list_is_said_together():
    assert show({**PRICE, "label": "Items"}).size == (
        SizeFigure("Items", "1,250.00 USD", "2 amounts in total"),
    )


def test_a_list_of_several_currencies_is_said_and_not_added_up():
    mixed = [ITEMS[0], {"price": "2.00", "currency": "EUR"}]
    assert show({**PRICE, "label": "Items"}, args={"items": mixed}).size == (
        SizeFigure(
            "Items",
            "1,000.00 USD and 2.00 EUR",
            "2 amounts in 2 currencies, not added up",
        ),
    )


def test_money_that_only_the_reader_knows_is_said():
    shown = show({"fact": "order_total"}, known={"before": BEFORE}, **KNOWN)
    assert shown.size == (
        SizeFigure(
            "Order total", "899.00 USD", "looked up by Holdpoint, used as the amount"
        ),
    )


def test_amounts_of_several_kinds_are_said_in_all():
    declared = ({**PRICE, "label": "Items"}, {"fact": "order_total"})
    pairs = show(*declared, known={"before": BEFORE}, **KNOWN).size
    assert pairs[-1] == SizeFigure("Total", "2,149.00 USD", "3 amounts in total")


def test_a_sum_is_said_in_the_currency_of_what_is_moved():
    facts = {"sum": {"spent": 125000}, "money": {"currency": "USD"}}
    assert show(PRICE, known=facts).size[-1] == SizeFigure(
        "Spent", "1,250.00 USD", "including this one"
    )
    assert len(show(PRICE, known={**facts, "money": {"currency": ""}}).size) == 1


@pytest.mark.parametrize(
    ("number", "window", "note"),
    [
        (1, {"hours": 24}, "only this one in 24 h"),
        (2, {"hours": 24}, "this one and 1 other, open or completed in 24 h"),
        (3, {"days": 7}, "this one and 2 others, open or completed in 7 days"),
        (
            1201,
            {"days": 3650},
            "this one and 1,200 others, open or completed in 10 years",
        ),
        (2, {"minutes": 90}, "this one and 1 other, open or completed in 90 min"),
    ],
)
def test_a_sum_says_what_else_it_counts_and_since_when(number, window, note):
    known = {
        "sum": {"spent": 125000},
        "count": {"spent": number},
        "money": {"currency": "USD"},
    }
    windows = {"spent": timedelta(**window)}
    assert show(PRICE, known=known, windows=windows).size[-1].note == note


@pytest.mark.parametrize("hidden", ["items", "items.price"])
def test_a_concealed_amount_is_in_no_total(hidden):
    assert show(PRICE, sensitive=[hidden]).size == ()


def test_the_view_of_money_compares_a_list_with_its_limits():
    limit = {"amount": "1200.00", "currency": "USD"}
    shown = show(PRICE, presenter="money", limits=[limit])
    assert shown.size[0] == SizeFigure(
        "Amount", "1,250.00 USD", "one thousand two hundred fifty"
    )
    assert "Above 1,200.00 USD" in [tag.text for tag in shown.tags]
