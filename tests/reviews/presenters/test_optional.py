"""An effect sentence names an argument that may be absent exactly when it is there."""

from __future__ import annotations

from typing import Any

import pytest

from policies.documents import InvalidPolicy, parse_document
from reviews.presenters import present_effect
from tests.policies import builders
from tests.reviews.definitions import tool

SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "recipient": {"type": "string"},
        "amount": {"type": "string"},
        "place": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
        },
    },
}
LABELS = {"recipient": "Recipient", "amount": "New amount"}


def said(effect: str, **args: Any) -> str:
    definition = tool(
        schema=SCHEMA, effect=effect, labels=LABELS, money=[], presenter="record"
    )
    shown = present_effect(definition, {"id": 6, **args})
    return "".join(part.text for part in shown.sentence)


@pytest.mark.parametrize(
    ("effect", "args", "sentence"),
    [
        ("Change payment {id} {recipient?}", {}, "Change payment 6"),
        (
            "Change payment {id} {recipient?}",
            {"recipient": "US133"},
            "Change payment 6 with recipient US133",
        ),
        (
            "Change payment {id} {recipient?} {amount?}",
            {"recipient": "US133", "amount": "5"},
            "Change payment 6 with recipient US133 and new amount 5",
        ),
        (
            "Change payment {id} {recipient?} {amount?} now",
            {"amount": "5"},
            "Change payment 6 with new amount 5 now",
        ),
        ("Change payment {id} {recipient?} now", {}, "Change payment 6 now"),
        ("Pay bill {id}[ to {recipient?}]", {}, "Pay bill 6"),
        ("Pay bill {id}[ to {recipient?}]", {"recipient": "A"}, "Pay bill 6 to A"),
        (
            "Pay bill {id}[ to {recipient?}][, {amount?} of it]",
            {"amount": "5"},
            "Pay bill 6, 5 of it",
        ),
        ("Change payment {id} {...}", {}, "Change payment 6"),
        (
            "Change payment {id} {...}",
            {"recipient": "A", "amount": "5"},
            "Change payment 6 with recipient A and new amount 5",
        ),
        (
            "Change payment {id}[ to {recipient?}] {...}",
            {"recipient": "A", "amount": "5"},
            "Change payment 6 to A with new amount 5",
        ),
        ("Pay bill {id}[ in {place.city?}]", {"place": {}}, "Pay bill 6"),
        (
            "Pay bill {id}[ in {place.city?}]",
            {"place": {"city": "Rome"}},
            "Pay bill 6 in Rome",
        ),
        ("Pay [urgent] bill {id}", {}, "Pay [urgent] bill 6"),
    ],
)
def test_what_is_absent_is_not_said_and_what_is_there_is(
    effect: str, args: dict[str, Any], sentence: str
) -> None:
    assert said(effect, **args) == sentence


def test_an_empty_value_is_said_to_be_empty() -> None:
    assert said("Change payment {id} {recipient?}", recipient="").endswith("(empty)")


def test_a_value_cannot_write_marks_of_its_own() -> None:
    assert said("Pay bill {id}[ to {recipient?}]", recipient="{amount?}") == (
        "Pay bill 6 to {amount?}"
    )


@pytest.mark.parametrize(
    ("effect", "says"),
    [
        ("Pay {amount} {currency} to {to} for {note?}", "put both in brackets"),
        ("Pay {amount} {note}", "write {note?}"),
        ("Pay {amount} {nite?}", "did you mean note?"),
        ("Pay {amount} {note?", "a brace is unbalanced"),
    ],
)
def test_a_sentence_that_could_be_false_is_refused(effect: str, says: str) -> None:
    with pytest.raises(InvalidPolicy) as found:
        parse_document(builders.data(effect=effect))
    assert any(says in error["message"] for error in found.value.errors)


def test_a_view_of_money_says_what_may_be_absent_too() -> None:
    document = builders.document(
        presenter="money", effect="Pay {amount} {currency} to {to}[ for {note?}]"
    )
    args = {"to": "A", "amount": "5.00", "currency": "USD"}
    pay = document.tools["pay"]
    assert _plain(present_effect(pay, args)) == "Pay 5.00 USD to A"
    assert (
        _plain(present_effect(pay, {**args, "note": "tea"}))
        == "Pay 5.00 USD to A for tea"
    )


def _plain(shown: Any) -> str:
    return "".join(part.text for part in shown.sentence)
