"""What a draft changes, in the units of the people who decide."""

from __future__ import annotations

from typing import Any

import pytest

from policies import comparison
from policies.documents import parse_document
from tests import factories
from tests.policies.test_changes import set_in


def group(*edits: Any) -> dict[str, list[str]]:
    before, after = factories.document_of_tests(), factories.document_of_tests()
    for edit in edits:
        edit(after)
    listed = comparison.compare_policies(parse_document(before), parse_document(after))
    return {
        title: [f"{change.what}: {change.how}" for change in members]
        for title, _, members in comparison.group_changes(listed)
    }


RULES = ("rules", "0")


@pytest.mark.parametrize(
    ("edit", "title", "says"),
    [
        (
            set_in(*RULES, "when", to="args.amount > 90000"),
            "Asks for less",
            "pay over 500.00 up to 900.00 USD: 2 supervisors → 1 reviewer",
        ),
        (
            set_in(*RULES, "when", to="args.amount >= 10000"),
            "Asks for more",
            "pay over 99.99 up to 500.00 USD: 1 reviewer → 2 supervisors",
        ),
        (
            set_in("steps", "approve", to=[{"role": "reviewer", "required": 2}]),
            "Asks for more",
            "pay up to 500.00 USD: 1 reviewer → 2 reviewers",
        ),
        (
            set_in("steps", "escalate", to=[{"role": "supervisor", "required": 3}]),
            "Asks for more",
            "deploy: 2 supervisors → 3 supervisors",
        ),
        (
            set_in(
                "tools",
                "pay",
                "steps",
                to={"approve": [{"role": "supervisor", "required": 1}]},
            ),
            "Asks for more",
            "pay up to 500.00 USD: 1 reviewer → 1 supervisor",
        ),
        (
            set_in("tools", "pay", "queue", to="mail"),
            "Other changes",
            "pay up to 10,000.00 USD: queue money → mail",
        ),
        (
            set_in("tools", "pay", "timeout", to="60m"),
            "Asks for less",
            "pay up to 10,000.00 USD: deadline 30 min → 1 h",
        ),
        (
            set_in("tools", "pay", "profile", "reversible", to=True),
            "Asks for less",
            "Tool pay: no longer irreversible",
        ),
        (
            set_in("tools", "tag", "executor", "path", to="tests.worlds.opaque"),
            "Other changes",
            "Tool tag: executor.path tests.worlds.keyed → tests.worlds.opaque",
        ),
        (
            set_in("critical_above", to={"amount": "600.00", "currency": "USD"}),
            "Asks for more",
            "pay over 600.00 USD: risk high → critical",
        ),
    ],
)
def test_a_change_is_said_by_amount_and_people(
    edit: Any, title: str, says: str
) -> None:
    groups = group(edit)
    assert says in groups[title], groups


def test_what_asks_for_less_comes_first_and_others_last() -> None:
    groups = group(
        set_in("tools", "pay", "queue", to="mail"),
        set_in("tools", "pay", "requires_reason", to=True),
        set_in(*RULES, "then", to={"tier": "approve"}),
    )
    assert [*groups] == ["Asks for less", "Asks for more", "Other changes"]
    says = "pay over 500.00 up to 10,000.00 USD: 2 supervisors → 1 reviewer"
    assert says in groups["Asks for less"]


def test_the_role_that_a_rule_asks_has_a_direction() -> None:
    step = {"step": {"role": "supervisor", "required": 1}}
    less = {"step": {"role": "reviewer", "required": 1}}
    before, after = factories.document_of_tests(), factories.document_of_tests()
    before["rules"][0]["then"], after["rules"][0]["then"] = step, less
    listed = comparison.compare_policies(parse_document(before), parse_document(after))
    assert "1 supervisor → 1 reviewer" in listed[0].how
    assert listed[0].direction == "less"


def test_the_same_policy_has_no_changes() -> None:
    assert group() == {}
