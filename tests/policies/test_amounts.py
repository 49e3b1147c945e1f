"""What one call moves, and what of it counts together."""

from __future__ import annotations

from typing import Any

import pytest

from policies import amounts, money
from policies.money import InvalidMoney, Money
from tests.policies import builders

PAYMENT = {"to": "a", "amount": "899.00", "currency": "USD"}
FEE = {"amount": "fee", "currency": "fee_currency", "absent": "none"}


def two(**changes):
    """A tool that moves an amount and a fee."""
    schema = builders.data()["tools"]["pay"]["schema"]
    schema["properties"] |= {
        "fee": {"type": "string"},
        "fee_currency": {"type": "string"},
    }
    pair = {"amount": "amount", "currency": "currency"}
    return builders.document(changes, schema=schema, money=[pair, FEE])


def fee(amount, currency="USD"):
    return {**PAYMENT, "fee": amount, "fee_currency": currency}


def test_the_amount_is_read_from_the_arguments():
    definition = builders.document().tools["pay"]
    assert amounts.list_amounts(definition, PAYMENT) == [
        ("amount", Money(89900, "USD"))
    ]
    assert amounts.list_amounts(definition, {"to": "a"}) == []
    assert amounts.to_minor_units(definition, PAYMENT)["amount"] == 89900
    with pytest.raises(InvalidMoney):
        amounts.to_minor_units(definition, {**PAYMENT, "amount": 899.0})


def test_every_amount_that_is_there_is_read():
    moving = amounts.list_amounts(two().tools["pay"], fee("1.50", "EUR"))
    assert moving == [("amount", Money(89900, "USD")), ("fee", Money(150, "EUR"))]


def test_all_amounts_together_are_no_more_than_one_can_be():
    definition = two().tools["pay"]
    most = money.format_amount(Money(money.MAX_MINOR, "USD"))
    assert not list(amounts.list_errors(definition, {**fee("0.00"), "amount": most}))
    (error,) = amounts.list_errors(definition, {**fee("0.01"), "amount": most})
    assert error["path"] == "args"


ITEM = {
    "type": "object",
    "required": ["price"],
    "properties": {
        "price": {"type": "string"},
        "currency": {"enum": ["USD", "EUR"]},
        "quantity": {"type": "integer"},
        "extras": {"type": "array", "items": {"$ref": "#/$defs/extra"}},
    },
}
SCHEMA = {
    "type": "object",
    "required": ["items"],
    "properties": {
        "items": {"type": "array", "items": ITEM},
        "shipping": {"type": "object", "properties": {"cost": {"type": "string"}}},
        "tips": {"type": "array", "items": {"type": "string"}},
        "currency": {"enum": ["USD", "EUR"]},
    },
    "$defs": {"extra": {"type": "object", "properties": {"cost": {"type": "string"}}}},
}
PRICE = {
    "path": "items[*].price",
    "currency": "items[*].currency",
    "absent": "none",
}


def order(*declared, **parts):
    """A tool whose money is where `declared` says."""
    parts = {"schema": SCHEMA, "money": [], "effect": "Order {items}", **parts}
    measures = parts.pop("measures", {})
    return builders.document({"measures": measures}, amounts=list(declared), **parts)


def moved(tool, args, before=None):
    return [
        (name, str(amount))
        for name, amount in amounts.list_amounts(tool, args, before or {})
    ]


def test_the_amounts_of_a_list_are_read_one_by_one():
    tool = order(PRICE).tools["pay"]
    items = [{"price": "1.00", "currency": "USD"}, {"price": "2.50", "currency": "EUR"}]
    assert moved(tool, {"items": items}) == [
        ("items[*].price", "1.00 USD"),
        ("items[*].price", "2.50 EUR"),
    ]
    assert moved(tool, {"items": []}) == []


@pytest.mark.parametrize(
    ("declared", "args", "found"),
    [
        ({"currency": "currency"}, {"currency": "EUR"}, "6.00 EUR"),
        ({"currency": "USD"}, {}, "6.00 USD"),
        ({"currency": "USD", "times": "items[*].quantity"}, {}, "18.00 USD"),
    ],
)
def test_a_currency_may_be_that_of_all_and_an_amount_be_counted_often(
    declared, args, found
):
    tool = order({**PRICE, **declared}).tools["pay"]
    items = [{"price": "6.00", "quantity": 3}]
    assert moved(tool, {"items": items, **args}) == [("items[*].price", found)]


def test_amounts_stand_deeper_in_lists_of_lists_and_alone():
    declared = [
        {"path": "shipping.cost", "currency": "USD"},
        {"path": "items[*].extras[*].cost", "currency": "items[*].currency"},
        {"path": "tips[*]", "currency": "currency"},
    ]
    declared = [{**amount, "absent": "none"} for amount in declared]
    item = {"price": "1.00", "currency": "EUR", "extras": [{"cost": "0.10"}, {}]}
    args = {"items": [{"price": "9.00"}, item], "shipping": {"cost": "4.00"}}
    args |= {"tips": ["0.50", "0.60"], "currency": "USD"}
    assert [text for _, text in moved(order(*declared).tools["pay"], args)] == [
        "4.00 USD",
        "0.10 EUR",
        "0.50 USD",
        "0.60 USD",
    ]


def test_what_is_no_money_in_a_list_is_refused_with_its_place():
    tool = order({**PRICE, "times": "items[*].quantity"}).tools["pay"]
    items = [
        {"price": "1.00", "currency": "USD", "quantity": 1},
        {"price": "1.001", "currency": "USD"},
        {"price": "1.00"},
        {"price": "1.00", "currency": "USD", "quantity": -1},
    ]
    wrong = {
        error["path"]: error["message"]
        for error in amounts.list_errors(tool, {"items": items})
    }
    assert list(wrong) == [f"args.items[{n}].price" for n in (1, 2, 3)]
    assert "decimals" in wrong["args.items[1].price"]
    assert "currency" in wrong["args.items[2].price"]
    assert "not negative" in wrong["args.items[3].price"]


KNOWN = {
    "facts": ["order_total", "order_total_currency"],
    "reader": {"kind": "callable", "path": "tests.worlds.read"},
}


def test_an_amount_may_be_known_to_the_reader_alone():
    tool = order({"fact": "order_total"}, **KNOWN).tools["pay"]
    before = {"order_total": 89900, "order_total_currency": "USD"}
    args: dict[str, Any] = {"items": []}
    assert moved(tool, args, before) == [("before.order_total", "899.00 USD")]
    assert amounts.list_unread_facts(tool, before) == []


@pytest.mark.parametrize("said", [None, "899.00", -1, True])
def test_a_fact_that_is_no_amount_is_named(said):
    tool = order({"fact": "order_total"}, **KNOWN).tools["pay"]
    before = {"order_total": said, "order_total_currency": "USD"}
    assert (moved(tool, {"items": []}, before)) == []
    assert amounts.list_unread_facts(tool, before) == ["order_total"]
    assert amounts.list_unread_facts(tool, {"order_total": 1}) == ["order_total"]


def refunds(changes, **money):
    """A policy with a refund whose amount and currency may be left out."""
    part = {"type": ["string", "null"]}
    if "unit" in money:
        part = {"type": ["integer", "null"]}
    properties = {"to": {"type": "string"}, "amount": part}
    properties |= {"currency": {"type": "string"}}
    pair = {"amount": "amount", "currency": "currency", "absent": "all", **money}
    return builders.document(
        changes,
        schema={"type": "object", "required": ["to"], "properties": properties},
        money=[pair],
        effect="Refund[ {amount?} {currency?}] to {to}",
        **KNOWN,
    )


def refund(**money):
    return refunds({}, **money).tools["pay"]


LEFT = {"order_total": 89900, "order_total_currency": "USD"}


@pytest.mark.parametrize(
    "args",
    [{}, {"amount": None}, {"currency": "USD"}, {"amount": None, "currency": "USD"}],
)
def test_an_amount_that_is_left_out_is_everything_where_the_policy_says_so(args):
    ((name, whole),) = amounts.list_amounts(refund(), args)
    assert name == "amount"
    assert whole.is_whole
    assert whole.minor > money.MAX_MINOR
    assert amounts.list_absent_wholes(refund(), args) == {"amount": money.WHOLE}
    assert amounts.list_amounts(refund(absent="none"), args) == []
    assert list(amounts.list_errors(refund(), args)) == []
    assert "amount" not in amounts.to_minor_units(refund(), args)


def test_the_reader_may_know_how_much_everything_is():
    tool = refund(whole="order_total")
    assert moved(tool, {}, LEFT) == [("amount", "899.00 USD")]
    assert amounts.list_absent_wholes(tool, {}, LEFT) == {"amount": 89900}
    for unknown in ({}, {"order_total": -1, "order_total_currency": "USD"}):
        assert moved(tool, {}, unknown) == [("amount", money.WHOLE_WORDS)]


def test_zero_is_an_amount_and_an_amount_needs_its_currency():
    tool = refund()
    zero = {"amount": "0.00", "currency": "USD"}
    assert moved(tool, zero) == [("amount", "0.00 USD")]
    (error,) = amounts.list_errors(tool, {"amount": "1.00"})
    assert (error["path"], "currency" in error["message"]) == ("args.amount", True)


@pytest.mark.parametrize(
    "items",
    [[], [{"currency": "USD"}], [{"price": "1.00", "currency": "USD"}, {}]],
)
def test_an_empty_list_and_an_element_without_a_price_are_left_out_as_well(items):
    listed = {"type": "array", "items": {**ITEM, "required": []}}
    schema = {**SCHEMA, "properties": {"items": listed}}
    every = order({**PRICE, "absent": "all"}, schema=schema).tools["pay"]
    counted = [amount.money for amount in amounts.list_amounts(every, {"items": items})]
    assert money.combine_amounts(counted, "USD") == Money(money.WHOLE, "USD")


@pytest.mark.parametrize(
    ("currency", "said"), [("USD", "42.00"), ("JPY", "4200"), ("KWD", "4.200")]
)
def test_minor_units_are_exact_in_every_currency(currency, said):
    args = {"amount": 4200, "currency": currency}
    tool = refund(unit="minor")
    assert moved(tool, args) == [("amount", f"{said} {currency}")]
    assert amounts.to_minor_units(tool, args)["amount"] == 4200


@pytest.mark.parametrize("value", [4200.0, True, "42.00", -1, money.WHOLE, 2**60])
def test_minor_units_are_whole_numbers_that_are_an_amount(value):
    args = {"amount": value, "currency": "USD"}
    (error,) = amounts.list_errors(refund(unit="minor"), args)
    assert error["path"] == "args.amount"
