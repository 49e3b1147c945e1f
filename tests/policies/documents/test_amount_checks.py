"""A policy that names money which cannot be read is refused, with the repair."""

from __future__ import annotations

import pytest

from policies.documents import InvalidPolicy
from tests.policies import test_amounts
from tests.policies.test_amounts import KNOWN, PRICE, order

TOOL = "tools.pay"


def problems(*declared, **parts):
    with pytest.raises(InvalidPolicy) as refused:
        order(*declared, **parts)
    return {one["path"]: one["message"] for one in refused.value.errors}


@pytest.mark.parametrize(
    ("declared", "field", "said"),
    [
        (
            {"path": "items[*].prize", "currency": "USD"},
            "path",
            "items[*].prize is not",
        ),
        ({"path": "items.price", "currency": "USD"}, "path", "write [*] after items"),
        ({"path": "shipping[*].cost", "currency": "USD"}, "path", "remove [*] after"),
        ({"path": "items[*].quantity", "currency": "USD"}, "path", "never a number"),
        ({"path": "items[*]", "currency": "USD"}, "path", "never a number"),
        ({**PRICE, "currency": "items[*].curency"}, "currency", "is not an argument"),
        ({**PRICE, "currency": "tips[*]"}, "currency", "not in the same list"),
        ({**PRICE, "times": "items[*].currency"}, "times", "a whole number"),
        ({"fact": "order_total"}, "fact", "declare reader"),
    ],
)
def test_what_cannot_be_read_is_refused(declared, field, said):
    assert said in problems(declared)[f"{TOOL}.amounts.0.{field}"]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({}, "either path or fact"),
        ({**PRICE, "fact": "total"}, "either path or fact"),
        ({"path": "items[*].price"}, "set currency"),
        ({"fact": "total", "currency": "USD"}, "total_currency"),
    ],
)
def test_an_amount_has_one_place_and_a_currency(declared, said):
    assert said in problems(declared)[f"{TOOL}.amounts.0"]


def test_a_path_is_written_with_marks_of_lists():
    (message,) = problems({"path": "$.items", "currency": "USD"}).values()
    assert "items[*].price" in message


def test_a_fact_is_declared_with_its_currency():
    facts = {**KNOWN, "facts": ["order_total"]}
    (message,) = problems({"fact": "order_total"}, **facts).values()
    assert "order_total_currency is not among the tool's facts" in message


def test_one_amount_counts_once():
    said = problems(PRICE, {**PRICE, "currency": "USD"})
    assert "counted twice" in said[f"{TOOL}.amounts"]


def test_a_ceiling_of_a_batch_is_needed_for_money_in_lists_too():
    batch = {"varying": ["items"]}
    reversal = {"kind": "reversible", "undo": "Cancel it."}
    said = problems(PRICE, batchable=batch, reversal=reversal)
    assert "per_item and total" in said[f"{TOOL}.batchable"]


def test_a_measure_names_an_amount_of_a_list_or_of_the_reader():
    for amount in ("items[*].price", "before.order_total"):
        measures = {
            "spent": {"tool": "pay", "key": "agent", "window": "1h", "amount": amount}
        }
        document = test_amounts.order(
            PRICE, {"fact": "order_total"}, measures=measures, **KNOWN
        )
        assert document.measures["spent"].amount == amount
