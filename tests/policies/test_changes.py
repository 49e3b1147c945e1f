"""What a new policy asks for in place of another."""

from __future__ import annotations

from typing import Any

import pytest

from policies import changes
from policies.changes import Direction
from policies.documents import Rule, parse_document
from tests import factories

LESS, MAYBE, CHANGED, MORE = Direction


def compare(change: Any) -> list[tuple[str, str]]:
    before, after = factories.document_of_tests(), factories.document_of_tests()
    change(after)
    listed = changes.list_changes(parse_document(before), parse_document(after))
    return [(entry.direction, entry.text) for entry in listed]


@pytest.mark.parametrize(
    ("old", "new", "direction"),
    [
        ("args.amount > 50000", "args.amount > 90000", LESS),
        ("args.amount > 50000", "args.amount > 40000", MORE),
        ("args.amount >= 50000", "args.amount >= 90000", LESS),
        ("clock.hour < 8", "clock.hour < 6", LESS),
        ("clock.hour <= 8", "clock.hour <= 9", MORE),
        ("a.b > 1 && c.d > 10", "a.b > 1 && c.d > 20", LESS),
        ("a.b > 1 && c.d > 10", "a.b > 2 && c.d > 9", MAYBE),
        ("!(args.amount > 50000)", "!(args.amount > 90000)", MAYBE),
        ("args.amount > 50000", "args.amount >= 50000", MAYBE),
        ("args.amount == 50000", "args.amount == 90000", MAYBE),
        ("args.amount > 50000", "args.amount > 50000 && agent.unattended", MAYBE),
        ("50000 < args.amount", "90000 < args.amount", MAYBE),
    ],
)
def test_only_figures_that_are_compared_have_a_direction(
    old: str, new: str, direction: Direction
) -> None:
    assert changes.compare_conditions(old, new) is direction


def raise_figure(document: dict[str, Any]) -> None:
    document["rules"][0]["when"] = "args.amount > 90000"


def test_a_rule_with_a_larger_figure_asks_for_less() -> None:
    ((direction, text),) = compare(raise_figure)
    assert direction is LESS
    assert text == (
        "Rule pay.over_500 (pay, pay_queryable, pay_opaque) asks for less:"
        " args.amount > 500.00 USD → args.amount > 900.00 USD."
    )


def set_in(*path: str, to: Any) -> Any:
    def change(document: Any) -> None:
        *around, last = path
        for name in around:
            document = document[int(name) if name.isdigit() else name]
        document[last] = to

    return change


@pytest.mark.parametrize(
    ("change", "direction", "names"),
    [
        (lambda document: document["rules"].pop(0), LESS, "Rule pay.over_500"),
        (set_in("rules", "0", "tools", to=["pay"]), LESS, "pay_queryable, pay_opaque"),
        (set_in("rules", "1", "then", to={"tier": "escalate"}), LESS, "block"),
        (
            set_in("rules", "0", "text", to="Other."),
            CHANGED,
            "has other words.",
        ),
        (set_in("tools", "deploy", "risk", to="high"), LESS, "escalate → approve"),
        (set_in("tools", "pay", "edit", to="alone"), LESS, "Tool pay"),
        (set_in("tools", "pay", "timeout", to="60m"), LESS, "30 min → 1 h"),
        (set_in("tools", "pay", "timeout", to="10m"), MORE, "Tool pay"),
        (set_in("tools", "write", "requires_reason", to=False), LESS, "true → false"),
        (
            set_in("recall", to={"high": 90}),
            MORE,
            "more: none → 90 s",
        ),
        (set_in("zone", to="Asia/Tokyo"), CHANGED, "zone changes: UTC → Asia/Tokyo"),
        (set_in("desk", "micro_check", to={"high": 5}), MORE, "never → 1 in 5"),
        (set_in("tools", "repay", "batchable", "items", to=9), MAYBE, "batchable"),
        (set_in("tools", "pay", "preconditions", to=[]), LESS, "preconditions"),
        (set_in("tools", "pay", "title", to="Pay it"), CHANGED, "title"),
        (
            set_in("steps", "escalate", to=[{"role": "supervisor", "required": 3}]),
            MORE,
            "2 supervisors → 3 supervisors",
        ),
        (
            set_in("desk", "written_answer", to=["critical"]),
            LESS,
            "written_answer (every tool)",
        ),
        (
            set_in("desk", "step_up", to={"high": ["passkey", "totp"]}),
            MORE,
            "Step-up at high risk asks for more: password, totp, passkey, provider →",
        ),
        (
            set_in("critical_above", to={"amount": "9.00", "currency": "USD"}),
            MORE,
            "none → 9.00 USD",
        ),
    ],
)
def test_each_part_says_its_direction(
    change: Any, direction: Direction, names: str
) -> None:
    listed = compare(change)
    assert (listed[0][0], names in listed[0][1]) == (direction, True), listed


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("args.amount > 1250000", "args.amount > 12,500.00 USD"),
        (
            "5000<args.amount || 7 < count.a",
            "50.00 USD<args.amount || 7 < count.a",
        ),
        ("money.amount_minor >= 900", "money.amount_minor >= 9.00 USD"),
        ("sum.spent > 7 || clock.hour < 8", "sum.spent > 0.07 USD || clock.hour < 8"),
        (
            "before.kept > 1 && before.n > 1",
            "before.kept > 0.01 USD && before.n > 1",
        ),
        ("args.items > 50000", "args.items > 50000"),
    ],
)
def test_a_condition_has_its_amounts_as_money(when: str, said: str) -> None:
    document = factories.document_of_tests()
    spent = {"key": "agent", "tool": "pay", "amount": "amount", "window": "24h"}
    read = {"kind": "webhook", "url": "https://store.example/r"}
    document["measures"] = {"spent": spent, "tries": {**spent, "amount": None}}
    document["tools"]["pay"] |= {
        "facts": ["kept", "kept_currency", "n"],
        "reader": read,
    }
    document["rules"] = []
    found = parse_document(document)
    then = {"tier": "escalate"}
    rule = Rule(id="a.b", text="A.", tools=["pay"], when=when, then=then)
    assert changes.format_condition(found, rule) == said


def test_the_same_policy_has_no_changes() -> None:
    assert compare(lambda document: None) == []
