"""A budget of money as people write it."""

from __future__ import annotations

import pytest

from journal.errors import InvalidInput
from policies import budgets
from policies.money import Money


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("", {}),
        (" \n\n", {}),
        ("500.00 USD", {"USD": "500.00"}),
        ("500 USD\r\n 7.5 EUR", {"EUR": "7.50", "USD": "500.00"}),
        ("0 JPY", {"JPY": "0"}),
    ],
)
def test_a_line_is_an_amount_of_a_currency(text: str, budget: dict[str, str]) -> None:
    parsed = budgets.parse_budget(text)
    assert parsed == budget
    assert budgets.parse_budget(budgets.write_budget(parsed)) == budget


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("500", "three capital letters"),
        ("USD 500", "three capital letters"),
        ("1,500.00 USD", 'write a line such as "500.00 USD"'),
        ("1e3 USD", "not a decimal amount"),
        ("0.001 USD", "USD has 2 decimals"),
        ("1 USD\n2 USD", "USD stands in two lines"),
        ("\n".join(f"1 A{a}{b}" for a in "ABCDE" for b in "ABCDE"), "at most 20"),
    ],
)
def test_what_is_wrong_is_said_with_its_repair(text: str, rule: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        budgets.parse_budget(text)
    (error,) = refused.value.errors
    assert error["path"] == "daily_money"
    assert rule in error["message"]


def test_a_budget_has_no_more_than_it_names() -> None:
    budget = {"USD": "1500.00"}
    assert budgets.format_budget(budget) == ["1,500.00 USD"]
    assert budgets.load_limit(budget, "USD") == Money(150_000, "USD")
    assert budgets.load_limit(budget, "EUR") is None
