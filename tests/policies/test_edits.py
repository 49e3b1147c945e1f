"""What an edit widens, by what the policy declares of the tool."""

from __future__ import annotations

from typing import Any

import pytest

from policies import edits
from policies.documents import ToolDefinition
from policies.edits import CURRENCY, RAISES, REMOVES, JudgedCall

TEXT = {"type": "string"}
PLAIN = {
    "type": "object",
    "required": ["customer"],
    "properties": {
        "customer": TEXT,
        "amount": TEXT,
        "currency": {"enum": ["USD", "EUR"]},
        "note": TEXT,
        "to": {"type": "array", "items": TEXT},
        "bcc": {"type": "array", "items": TEXT},
        "host": TEXT,
        "command": TEXT,
    },
}
ROWS = {
    "type": "object",
    "required": ["payments"],
    "properties": {
        "payments": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["payee", "price"],
                "properties": {
                    "payee": TEXT,
                    "price": TEXT,
                    "times": {"type": "integer"},
                    "note": TEXT,
                },
            },
        }
    },
}
PAIR = {"money": [{"amount": "amount", "currency": "currency"}]}
PRICE = {"path": "payments[*].price", "currency": "USD", "times": "payments[*].times"}
PAYEES = {
    "schema": ROWS,
    "amounts": [PRICE],
    "presenter": "money",
    "shown": {"payee": "payments.payee"},
}
OWN = {"recipients": ["to", "bcc"], "domains": ["own.example"]}
PROFILE = {"reversible": False, "blast_radius": 4}
MAIL = {
    "classes": [
        {"name": "own", "when": OWN, "risk": "high", "profile": PROFILE},
        {"name": "other", "risk": "high", "profile": PROFILE},
    ]
}
ASKED = {"customer": "C-1", "amount": "40.00", "currency": "USD"}


def tool(**fields: Any) -> ToolDefinition:
    return ToolDefinition(
        **{
            "name": "act",
            "title": "Act",
            "schema": PLAIN,
            "queue": "money",
            "risk": "high",
            "profile": PROFILE,
            "executor": {"kind": "agent"},
            **fields,
        }
    )


def compare(
    definition: ToolDefinition, old: dict[str, Any], new: dict[str, Any]
) -> list[str]:
    return edits.list_widenings(
        definition, JudgedCall(old, {}, {}), JudgedCall(new, {}, {})
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"amount": "40.01"}, [RAISES]),
        ({"amount": "40.00"}, []),
        ({"amount": "39.00"}, []),
        ({"currency": "EUR"}, [CURRENCY]),
        ({"currency": "EUR", "amount": "1.00"}, [CURRENCY]),
        ({"note": "sorry"}, []),
    ],
)
def test_more_money_or_another_currency_widens(
    change: dict[str, Any], found: list[str]
) -> None:
    assert compare(tool(**PAIR), ASKED, {**ASKED, **change}) == found


def test_an_amount_that_appears_or_is_left_out_widens() -> None:
    without = {"customer": "C-1"}
    assert compare(tool(**PAIR), without, ASKED) == [RAISES]
    assert compare(tool(**PAIR), ASKED, without) == [REMOVES]
    assert compare(tool(**PAIR), without, {**ASKED, "amount": "0.00"}) == []


def test_an_amount_that_counts_as_nothing_may_be_left_out() -> None:
    (pair,) = PAIR["money"]
    definition = tool(money=[{**pair, "absent": "none"}])
    assert compare(definition, ASKED, {"customer": "C-1"}) == []


def row(payee: str, price: str, **more: Any) -> dict[str, Any]:
    return {"payee": payee, "price": price, **more}


A, B = row("a", "10.00"), row("b", "90.00")


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([A, B, row("c", "1.00")], [RAISES, "it changes “Payee”"]),
        ([row("a", "11.00"), B], [RAISES]),
        ([row("a", "10.00", times=2), B], [RAISES]),
        ([row("a", "90.00"), row("b", "10.00")], [RAISES]),  # the same total
        ([B, A], [RAISES, "it changes “Payee”"]),
        ([row("c", "10.00"), B], ["it changes “Payee”"]),
        ([row("b", "10.00"), row("a", "90.00")], ["it changes “Payee”"]),
        ([B], []),
        ([row("a", "90.00")], [RAISES]),
        ([row("a", "9.00", note="less"), B], []),
    ],
)
def test_each_row_of_a_list_counts(
    rows: list[dict[str, Any]], found: list[str]
) -> None:
    assert compare(tool(**PAYEES), {"payments": [A, B]}, {"payments": rows}) == found


@pytest.mark.parametrize(
    ("change", "widens"),
    [
        ({"to": ["a@x.example", "b@x.example"]}, True),
        ({"to": ["b@x.example"]}, True),
        ({"bcc": ["b@x.example"]}, True),
        ({"to": ["c@x.example", "a@x.example"], "bcc": []}, False),
        ({"to": ["a@x.example"], "bcc": []}, False),
        ({"to": [], "bcc": ["a@x.example"]}, False),
    ],
)
@pytest.mark.parametrize(
    "declared", [MAIL, {"presenter": "email", "shown": {"to": "to", "bcc": "bcc"}}]
)
def test_somebody_new_among_the_recipients_widens(
    declared: dict[str, Any], change: dict[str, Any], widens: bool
) -> None:
    asked = {"customer": "C-1", "to": ["a@x.example"], "bcc": ["c@x.example"]}
    assert bool(compare(tool(**declared), asked, {**asked, **change})) is widens


def test_another_host_widens_and_its_label_names_it() -> None:
    definition = tool(presenter="shell", labels={"host": "Machine"})
    asked = {"customer": "C-1", "command": "ls", "host": "one"}
    assert compare(definition, asked, {**asked, "command": "ls -l"}) == []
    for changed in ({**asked, "host": "two"}, {"customer": "C-1", "command": "ls"}):
        assert compare(definition, asked, changed) == ["it changes “Machine”"]


def test_another_key_of_the_reader_widens() -> None:
    definition = tool(
        keys=["customer", "order_line"],
        reader={"kind": "callable", "path": "tests.worlds.read"},
    )
    old = JudgedCall(ASKED, {"customer": "C-1", "order_line": "1"}, {})
    new = JudgedCall(ASKED, {"customer": "C-1", "order_line": "2"}, {})
    assert edits.list_widenings(definition, old, old) == []
    assert edits.list_widenings(definition, old, new) == ["it changes the order line"]


def test_an_amount_that_only_the_reader_knows_is_compared() -> None:
    definition = tool(
        amounts=[{"fact": "total"}],
        facts=["total"],
        reader={"kind": "callable", "path": "tests.worlds.read"},
    )
    facts = [{"total": minor, "total_currency": "USD"} for minor in (100, 200)]
    old, new = (JudgedCall(ASKED, {}, before) for before in facts)
    assert edits.list_widenings(definition, old, new) == [RAISES]
    assert edits.list_widenings(definition, new, old) == []
