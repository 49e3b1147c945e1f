"""What one call moves, and what of it counts together."""

from __future__ import annotations

import pytest

from policies import amounts, money
from policies.money import InvalidMoney, Money
from tests.policies import builders

PAYMENT = {"to": "a", "amount": "899.00", "currency": "USD"}
FEE = {"amount": "fee", "currency": "fee_currency"}


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
    assert amounts.of(definition, PAYMENT) == {"amount": Money(89900, "USD")}
    assert amounts.of(definition, {"to": "a"}) == {}
    assert amounts.in_minor_units(definition, PAYMENT)["amount"] == 89900
    with pytest.raises(InvalidMoney):
        amounts.in_minor_units(definition, {**PAYMENT, "amount": 899.0})


def test_every_amount_that_is_there_is_read():
    found = amounts.of(two().tools["pay"], fee("1.50", "EUR"))
    assert found == {"amount": Money(89900, "USD"), "fee": Money(150, "EUR")}


def test_all_amounts_together_are_no_more_than_one_can_be():
    definition = two().tools["pay"]
    most = money.format_amount(Money(money.MAX_MINOR, "USD"))
    assert not list(amounts.wrong(definition, {**fee("0.00"), "amount": most}))
    (error,) = amounts.wrong(definition, {**fee("0.01"), "amount": most})
    assert error["path"] == "args"
