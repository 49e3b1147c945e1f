"""What an action moves in all: money in lists, and money that only the reader knows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from policies import money
from reviews.presenters import build_argument_subject, compare_versions, present_effect
from reviews.presenters.shapes import SizeFigure
from tests.policies.test_amounts import KNOWN, PRICE, order, refund

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
            "Order total", "899.00 USD", "looked up by Counterseal, used as the amount"
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
        (1, {"hours": 24}, "no other in 24 h"),
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


def refunded(args, facts=None, presenter="money", **field):
    tool = refund(**field).model_copy(update={"presenter": presenter})
    return present_effect(tool, {"to": "Casey", **args}, facts=facts or {})


def said(shown):
    return "".join(part.text for part in shown.sentence)


@pytest.mark.parametrize("presenter", ["money", "record"])
def test_the_page_says_what_an_amount_that_is_left_out_means(presenter):
    shown = refunded({}, presenter=presenter)
    assert said(shown) == "Refund to Casey (the whole amount)"
    assert SizeFigure("Amount", "the whole amount", "amount not given") in shown.size
    assert "Asks for the whole amount" in [tag.text for tag in shown.tags if tag.loud]
    nothing = refunded({}, presenter=presenter, absent="none")
    assert said(nothing) == "Refund to Casey (amount not given)"
    figure = SizeFigure("Amount", "amount not given", "counts as nothing")
    assert figure in nothing.size
    given = refunded({"amount": "1.00", "currency": "USD"}, presenter=presenter)
    assert said(given) == "Refund 1.00 USD to Casey"


def test_the_figure_that_the_reader_knows_is_said_as_well():
    shown = refunded({}, {"before": BEFORE}, whole="order_total")
    assert said(shown) == "Refund to Casey (the whole amount)"
    assert shown.size[0].value == "899.00 USD"
    assert "899.00 USD by the record" in shown.size[1].note


def test_no_figure_is_said_of_a_sum_with_a_whole_amount():
    facts = {"sum": {"spent": money.WHOLE}, "money": {"currency": "USD"}}
    (spent,) = [one for one in refunded({}, facts).size if one.label == "Spent"]
    assert spent.value == "above every figure"


@pytest.mark.parametrize("presenter", ["money", "record"])
@pytest.mark.parametrize(
    ("currency", "units"), [("USD", "42.00"), ("JPY", "4,200"), ("KWD", "4.200")]
)
def test_minor_units_are_shown_in_the_units_of_their_currency(
    presenter, currency, units
):
    args = {"amount": 4200, "currency": currency}
    shown = refunded(args, presenter=presenter, unit="minor")
    assert said(shown) == f"Refund {units} {currency} to Casey"
    rows = {row.path: row.cell for row in shown.other}
    assert rows["amount"].text == f"{units} {currency}"
    assert rows["amount"].raw == "4200"


def test_each_version_of_an_amount_in_minor_units_has_its_own_currency():
    tool = refund(unit="minor")
    older = {"to": "a", "amount": 500, "currency": "JPY"}
    newer = {"to": "a", "amount": 4200, "currency": "USD"}
    changes = compare_versions(build_argument_subject(tool, newer, older))
    amount = next(one for one in changes if one.path == "amount")
    said = [cell.text for cell in (amount.before, amount.after) if cell]
    assert said == ["500 JPY", "42.00 USD"]


def test_an_amount_in_minor_units_whose_currency_is_concealed_is_not_misread():
    tool = refund(unit="minor").model_copy(update={"sensitive": ["currency"]})
    args = {"to": "Casey", "amount": 4200, "currency": "USD"}
    rows = {row.path: row.cell for row in present_effect(tool, args).other}
    assert rows["amount"].text == "4200 in minor units"
