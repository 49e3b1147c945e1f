"""An amount is read by us, once, and said in figures and in words."""

from __future__ import annotations

import pytest

from policies.money import Money
from reviews.presenters import money, present_effect
from reviews.presenters.shapes import SizeFigure, TextPart, ValuePart
from tests.reviews.definitions import tool
from tests.reviews.presenters import kinds

REFUND = {
    "presenter": "money",
    "money": [{"amount": "amount", "currency": "currency"}],
    "effect": "Refund {amount} {currency} for order {order_id}",
}
TOTAL = {"order_total": 89900, "order_total_currency": "USD", "shipped": True}


def show(amount="899.00", currency="USD", facts=None, **parts):
    args = {"order_id": "78291", "amount": amount, "currency": currency}
    return present_effect(tool(**REFUND | parts), args, facts=facts)


def test_the_amount_is_one_value_of_ours():
    assert show("12500.00").sentence == (
        TextPart("Refund "),
        ValuePart("12,500.00 USD", untrusted=False),
        TextPart(" for order "),
        ValuePart("78291"),
    )


def test_the_amount_comes_first_in_figures_and_words():
    assert show("12500.00").size == (
        SizeFigure("Amount", "12,500.00 USD", "twelve thousand five hundred"),
    )
    assert show("899.50").size[0].note == "eight hundred ninety-nine and 50/100"
    assert show("12500", "JPY").size[0].value == "12,500 JPY"
    assert show("1.005", "KWD").size[0].note == "one and 5/1000"


FEE = {"amount": "fee", "currency": "fee_currency"}


def with_fee(fee, currency="USD", **parts):
    args = {"order_id": "78291", "amount": "10.00", "currency": "USD"}
    definition = tool(**REFUND | {"money": [*REFUND["money"], FEE]} | parts)
    return present_effect(definition, {**args, "fee": fee, "fee_currency": currency})


def test_several_amounts_are_said_together():
    limit = {"amount": "500.00", "currency": "USD"}
    shown = with_fee("9000.00", limits=[limit])
    assert shown.size == (
        SizeFigure("Amount", "10.00 USD", "ten"),
        SizeFigure("Total", "9,010.00 USD", "2 amounts in total"),
    )
    assert "Above 500.00 USD" in [tag.text for tag in shown.tags if tag.loud]


def test_amounts_in_several_currencies_are_said_and_not_added_up():
    shown = with_fee("1.00", "EUR")
    assert shown.size[1] == SizeFigure(
        "Total",
        "10.00 USD and 1.00 EUR",
        "2 amounts in 2 currencies, not added up",
    )
    assert shown.tags[0].text == "Amounts in several currencies"


def test_the_amount_as_the_agent_wrote_it_is_a_row_as_well():
    (row,) = [r for r in show("899.5").other if r.path == "amount"]
    assert row.cell.text == "899.5"


@pytest.mark.parametrize("amount", ["1,000", "1.000", "1e3", " 5", "", None, 5, "-1"])
def test_an_amount_that_cannot_be_read_is_said_so_and_quoted(amount):
    shown = show(amount)
    assert shown.tags[0].text == "The amount could not be read"
    assert shown.size == ()
    assert all(part.untrusted for part in shown.sentence if isinstance(part, ValuePart))


def test_a_total_that_the_reader_knows_gives_the_share():
    assert (
        show("899.00", facts={"before": TOTAL})
        .size[0]
        .note.endswith("100 % of the order total")
    )
    tags = [tag.text for tag in show("899.00", facts={"before": TOTAL}).tags]
    assert "All of the order total" in tags
    tags = [tag.text for tag in show("899.01", facts={"before": TOTAL}).tags]
    assert "More than the order total" in tags
    assert "%" not in show("899.00", "EUR", facts={"before": TOTAL}).size[0].note
    for odd in ({"order_total": 0}, {"order_total": "x"}, None, "text"):
        assert show(facts={"before": odd}).size


def test_rolling_sums_stand_beside_it():
    shown = show(facts={"sum": {"refunds_by_customer": 126230}})
    pair = SizeFigure("Refunds by customer", "1,262.30 USD", "including this one")
    assert shown.size[1] == pair


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "zero"),
        (13, "thirteen"),
        (20, "twenty"),
        (99, "ninety-nine"),
        (100, "one hundred"),
        (1_000, "one thousand"),
        (12_500, "twelve thousand five hundred"),
        (1_000_001, "one million one"),
        (
            999_999_999,
            "nine hundred ninety-nine million nine hundred ninety-nine thousand nine"
            " hundred ninety-nine",
        ),
        (90_071_992_547_409, "ninety trillion"),
    ],
)
def test_words(number, said):
    assert money.number_to_words(number).startswith(said)


def test_the_largest_amount_has_words():
    assert money.amount_to_words(Money(2**53 - 1, "JPY"))


BALANCES = [
    {"fact": "kept", "label": "Kept", "moves": "down"},
    {"fact": "refunded", "label": "Refunded", "moves": "up"},
]
READ = {
    "kept": 89900,
    "kept_currency": "USD",
    "refunded": 0,
    "refunded_currency": "USD",
}


def balances(amount="449.50", **facts):
    shown = show(amount, balances=BALANCES, facts={"before": {**READ, **facts}})
    return [(c.label, c.before.text, c.after.text) for c in shown.changes]


def test_what_the_amount_moves_is_shown_before_and_after():
    assert balances() == [
        ("Kept", "899.00 USD", "449.50 USD"),
        ("Refunded", "0.00 USD", "449.50 USD"),
    ]


def test_a_balance_may_go_below_nothing_and_says_so():
    assert balances("900.00")[0] == ("Kept", "899.00 USD", "-1.00 USD")


def test_a_balance_in_another_currency_or_unread_is_not_computed():
    assert balances(kept_currency="EUR", refunded=None) == []


def pay(amount="495.00", facts=None, **before):
    return kinds.show("pay", amount=amount, facts={"before": before, **(facts or {})})


def test_a_payee_and_how_often_before_stand_beside_the_amount():
    shown = pay(
        payments_before=14,
        usual_low=8000,
        usual_high=21000,
        usual_high_currency="EUR",
    )
    (payee,) = [pair for pair in shown.size if pair.label == "To"]
    assert (payee.value, payee.untrusted) == ("Alder & Sons", True)
    assert payee.note == "account ending 2051 · 14 before, usually 80.00 to 210.00 EUR"
    assert "More than usual for this payee" in kinds.loud(shown)


@pytest.mark.parametrize(
    ("amount", "before", "tag"),
    [
        ("100.00", {"payments_before": 0}, "First payment to this payee"),
        ("100.00", {"last_currency": "USD"}, "Another currency than before"),
        ("499.99", {}, "Just under 500.00 EUR"),
        ("500.01", {}, "Above 500.00 EUR"),
    ],
)
def test_what_is_always_called_out(amount, before, tag):
    assert tag in kinds.loud(pay(amount, **before))
    assert tag not in kinds.loud(pay("100.00", payments_before=3))


def test_parts_of_a_payment_are_seen_together():
    shown = pay("100.00", facts={"sum": {"paid": 232500}})
    assert "Above 500.00 EUR together with earlier ones" in kinds.loud(shown)
    assert "Paid: above 2,000.00 EUR" in kinds.loud(shown)
    assert shown.size[-1].note == "of 2,000.00 EUR, including this one"


def test_facts_that_are_no_numbers_are_left_out():
    odd = pay(payments_before="many", usual_high="x", usual_high_currency="EUR")
    assert [pair.note for pair in odd.size if pair.label == "To"] == [
        "account ending 2051"
    ]


def test_the_amount_on_top_is_not_said_again():
    shown = show("12500.00")
    assert [row.path for row in shown.beside] == ["order_id"]
    stated = {row.path: row.cell.text for row in shown.stated}
    assert stated == {"amount": "12500.00", "currency": "USD"}
    assert {row.path for row in with_fee("5.00").beside} == {
        "order_id",
        "fee",
        "fee_currency",
    }
    unread = show("much")
    assert not unread.stated
    assert len(unread.beside) == 3


def test_what_the_second_amount_says_is_not_said_of_the_first():
    definition = tool(
        **REFUND
        | {"money": [*REFUND["money"], FEE], "effect": "Refund {amount} with {fee}"}
    )
    shown = present_effect(
        definition, {"order_id": "7", "fee": "5.00", "fee_currency": "USD"}
    )
    said = "".join(part.text for part in shown.sentence)
    assert said == "Refund (not given) with 5.00"
    assert [row.path for row in shown.beside] == ["order_id"]
