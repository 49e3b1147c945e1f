"""A policy that names money which cannot be read is refused, with the repair."""

from __future__ import annotations

from typing import Any

import pytest

from policies.documents import InvalidPolicy
from tests.policies import builders, test_amounts
from tests.policies.test_amounts import KNOWN, PRICE, order

TOOL = "tools.pay"


def problems(*declared, **parts):
    with pytest.raises(InvalidPolicy) as refused:
        order(*declared, **parts)
    return {error["path"]: error["message"] for error in refused.value.errors}


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
    errors = problems(PRICE, {**PRICE, "currency": "USD"})
    assert "counted twice" in errors[f"{TOOL}.amounts"]


def test_a_ceiling_of_a_batch_is_needed_for_money_in_lists_too():
    batch = {"varying": ["items"]}
    reversal = {"kind": "reversible", "undo": "Cancel it."}
    errors = problems(PRICE, batchable=batch, reversal=reversal)
    assert "per_item and total" in errors[f"{TOOL}.batchable"]


def test_a_measure_names_an_amount_of_a_list_or_of_the_reader():
    for amount in ("items[*].price", "before.order_total"):
        measures = {
            "spent": {"tool": "pay", "key": "agent", "window": "1h", "amount": amount}
        }
        document = test_amounts.order(
            PRICE, {"fact": "order_total"}, measures=measures, **KNOWN
        )
        assert document.measures["spent"].amount == amount


def optional(**money):
    """A payment whose amount and currency the schema does not require."""
    return tool_with(["to"], **money)


def tool_with(required, part=None, **money):
    properties = {
        "to": {"type": "string"},
        "amount": part or {"type": "string"},
        "currency": {"enum": ["USD", "EUR"]},
    }
    schema = {"type": "object", "required": required, "properties": properties}
    pair = {"amount": "amount", "currency": "currency", **money}
    read: dict[str, Any] = KNOWN if "whole" in money else {}
    return builders.document(schema=schema, money=[pair], effect="Pay {to}", **read)


def why_refused(required, part=None, **money):
    with pytest.raises(InvalidPolicy) as refused:
        tool_with(required, part, **money)
    return {error["path"]: error["message"] for error in refused.value.errors}


EVERY = ["to", "amount", "currency"]


@pytest.mark.parametrize(
    ("required", "part"),
    [
        (["to"], {"type": "string"}),
        (EVERY, {"type": ["string", "null"]}),
        (EVERY, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (EVERY, {"enum": ["5.00", None]}),
    ],
)
def test_the_policy_says_what_it_means_to_leave_an_amount_out(required, part):
    errors = why_refused(required, part)[f"{TOOL}.money.0.absent"]
    assert "a call may leave out amount" in errors
    assert "absent: none" in errors
    assert "absent: all" in errors
    for meant in ("none", "all"):
        assert tool_with(required, part, absent=meant)


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("items[*].price", {}),
        ("shipping.cost", {}),
        ("tips[*]", {"currency": "USD"}),
        ("items[*].extras[*].cost", {}),
    ],
)
def test_lists_that_may_be_empty_and_optional_objects_need_it_too(path, more):
    errors = problems({"path": path, "currency": "USD", **more})
    assert f"may leave out {path}" in errors[f"{TOOL}.amounts.0.absent"]


def test_an_amount_that_is_always_there_needs_none():
    assert (
        "never leaves out"
        in (why_refused(EVERY, absent="all")[f"{TOOL}.money.0.absent"])
    )
    item = {
        "type": "object",
        "required": ["price"],
        "properties": {"price": {"type": "string"}},
    }
    listed = {"type": "array", "minItems": 1, "items": item}
    schema = {"type": "object", "required": ["i"], "properties": {"i": listed}}
    declared = {"path": "i[*].price", "currency": "USD"}
    assert order(declared, schema=schema, effect="Order {i}")


def test_the_fact_that_says_how_much_everything_is_comes_from_the_reader():
    optional(absent="all", whole="order_total")
    assert "requires absent: all" in str(why_refused(["to"], whole="order_total"))
    errors = why_refused(["to"], absent="all", whole="order_left")
    assert "is not among the tool's facts" in errors[f"{TOOL}.money.0.whole"]


def test_an_integer_is_money_only_in_minor_units():
    whole = {"type": "integer", "minimum": 1}
    assert "write unit: minor" in why_refused(EVERY, whole)[f"{TOOL}.money"]
    assert tool_with(EVERY, whole, unit="minor")
    for part in ({"type": "number"}, {"type": "string"}):
        errors = why_refused(EVERY, part, unit="minor")[f"{TOOL}.money"]
        assert "must be a whole number" in errors
