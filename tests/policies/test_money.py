"""Decimal strings in, minor units out, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies import money
from policies.money import InvalidMoney, Money


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("899.00", "USD", 89900),
        ("899", "USD", 89900),
        ("899.5", "USD", 89950),
        ("0.01", "USD", 1),
        ("0", "USD", 0),
        ("500", "JPY", 500),
        ("1.234", "KWD", 1234),
        ("1.2345", "UYW", 12345),
        ("7.00", "ZZZ", 700),
    ],
)
def test_an_amount_becomes_minor_units_of_its_currency(text, currency, minor):
    assert money.parse(text, currency) == Money(minor, currency)


@pytest.mark.parametrize(
    "text",
    [
        899.0, 899, True, None, "", " 1", "1 ", "1\n", "+1", "-1", "1e3", "01", ".5",
        "5.", "1.001", "1,00", "NaN", "Infinity", "0x10", "١", "1_000", "9" * 17,  # noqa: RUF001
        "90071992547410.00",
    ],
)  # fmt: skip
def test_anything_else_is_refused_without_repeating_it(text):
    with pytest.raises(InvalidMoney) as refusal:
        money.parse(text, "USD")
    assert str(text) not in str(refusal.value) or text in ("", 899)


@pytest.mark.parametrize("currency", ["usd", "US", "USDX", "", None, 840, "U$D"])
def test_a_currency_is_three_capital_letters(currency):
    with pytest.raises(InvalidMoney):
        money.parse("1.00", currency)


def test_decimals_are_those_of_the_currency():
    with pytest.raises(InvalidMoney, match="JPY has 0 decimals"):
        money.parse("1.0", "JPY")


def test_a_minus_must_be_allowed():
    assert money.parse("-1.00", "USD", negative=True) == Money(-100, "USD")


@given(
    st.integers(min_value=-money.MAX_MINOR, max_value=money.MAX_MINOR),
    st.sampled_from(["USD", "JPY", "KWD", "CLF", "ZZZ"]),
)
def test_what_is_written_is_read_back(minor, currency):
    written = money.format_amount(Money(minor, currency))
    assert money.parse(written, currency, negative=True) == Money(minor, currency)


def test_money_is_written_with_its_currency():
    assert str(Money(89900, "USD")) == "899.00 USD"
    assert str(Money(-5, "USD")) == "-0.05 USD"
    assert str(Money(500, "JPY")) == "500 JPY"


def test_sums_never_mix_currencies():
    sums = money.sum_by_currency([Money(1, "USD"), Money(2, "EUR"), Money(3, "USD")])
    assert sums == {"USD": 4, "EUR": 2}


def test_amounts_of_several_currencies_are_no_one_amount():
    dollars, euros = Money(1, "USD"), Money(2, "EUR")
    assert money.combine_amounts([], "USD") is None
    assert money.combine_amounts([dollars, Money(3, "USD")], "USD") == Money(4, "USD")
    assert money.combine_amounts([euros], "USD") == euros
    assert money.combine_amounts([dollars, euros, dollars], "USD") == Money(
        2, money.MIXED
    )
    assert money.combine_amounts([euros, Money(0, "USD")], "USD") == euros
    assert money.combine_amounts([Money(0, "USD")], "USD") == Money(0, "USD")
