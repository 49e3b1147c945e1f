"""Which written question a presentation asks, and which answers it takes."""

from __future__ import annotations

import pytest

from policies.choices import Risk
from reviews.attention_checks.written_questions import (
    WrittenQuestion,
    build_written_question,
    is_answer_needed,
)
from reviews.presenters import present_effect
from tests.reviews.definitions import tool
from tests.reviews.presenters import kinds
from tests.reviews.presenters.test_email import show as show_mail

ONE, TWO = (
    [{"role": "reviewer", "required": 1}],
    [{"role": "supervisor", "required": 2}],
)
PAYMENT = {"order_id": "1", "amount": "899.00", "currency": "USD"}


def ask_about_payment(**facts: object) -> WrittenQuestion | None:
    known = {
        "payments_before": 14,
        "usual_low": 1000,
        "usual_high": 5000,
        "usual_high_currency": "EUR",
        **facts,
    }
    shown = kinds.show("pay", amount="495.00", facts={"before": known})
    return build_written_question(shown)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("495.00 EUR", True),
        ("495", True),
        (" 495.00 eur ", True),
        ("49.50", False),
        ("", False),
        ("more than usual", False),
    ],
)
def test_an_unusual_amount_is_written_out(answer: str, right: bool) -> None:
    question = ask_about_payment()
    assert question is not None
    assert question.id == "written:unusual_amount"
    assert question.is_right(answer) is right


def test_the_payee_of_a_first_payment_is_written_out() -> None:
    question = ask_about_payment(payments_before=0)
    assert question is not None
    assert question.id == "written:first_payment"
    assert question.is_right("alder  & sons")
    assert not question.is_right("Alder & Son")


@pytest.mark.parametrize(
    ("domain", "other"),
    [
        ("northgate-electronlcs.example", "Northgate-Electronlcs.example"),
        (
            "n\u043erthgate-electronics.example",
            "n\u043erthgate-electronics.example".encode("idna").decode(),
        ),
    ],
)
def test_an_imitated_domain_is_written_in_either_form(domain: str, other: str) -> None:
    question = build_written_question(show_mail(to=[f"a@{domain}"]))
    assert question is not None
    assert question.id == "written:imitated_domain"
    assert question.is_right(domain)
    assert question.is_right(other)
    assert not question.is_right("northgate-electronics.example")


def test_what_nothing_can_check_takes_any_sentence() -> None:
    conflict = {"id": "a", "text": "Reason says no; carrier says yes", "checked": True}
    definition = tool(presenter="record")
    shown = present_effect(definition, PAYMENT, facts={"conflicts": [conflict]})
    question = build_written_question(shown)
    assert question is not None
    assert question.finding == conflict["text"]
    assert not question.is_right("yes")
    assert question.is_right("The carrier was wrong.")


def test_a_fact_that_nobody_gave_is_no_indicator() -> None:
    conflict = {"id": "a", "text": "Other", "checked": False}
    shown = present_effect(
        tool(presenter="record"), PAYMENT, facts={"conflicts": [conflict]}
    )
    assert build_written_question(shown) is None


@pytest.mark.parametrize(
    ("found", "risk", "steps", "needed"),
    [
        (["contradiction"], Risk.HIGH, ONE, True),
        ([], Risk.HIGH, ONE, False),
        (["contradiction"], Risk.MEDIUM, ONE, False),
        (["contradiction"], Risk.HIGH, TWO, False),
        (["contradiction"], Risk.HIGH, ONE * 2, False),
    ],
)
def test_it_is_needed_where_one_person_decides_a_risk(
    found: list[str], risk: Risk, steps: list[dict[str, object]], needed: bool
) -> None:
    assert is_answer_needed(found, risk, steps, [Risk.HIGH]) is needed
