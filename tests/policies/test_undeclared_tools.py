"""What stands for a tool that the policy does not declare."""

from __future__ import annotations

from typing import Any

import pytest

from policies import changes, evaluation, undeclared_tools
from policies.choices import Tier
from policies.documents import InvalidPolicy, UnknownTools
from policies.tool_descriptions import ToolDescription
from tests.policies import builders

HELD = UnknownTools(hold="money", tier=Tier.APPROVE)


@pytest.mark.parametrize(
    ("args", "presenter"),
    [
        ({"amount": "89.00", "currency": "USD", "customer": "c-1"}, "money"),
        ({"to": "a@b.example", "subject": "Hi", "body": "Hello"}, "email"),
        ({"channel": "#ops", "text": "Hello"}, "message"),
        ({"sql": "DELETE FROM orders"}, "sql"),
        ({"command": "rm -r x"}, "shell"),
        ({"url": "https://a.example/x", "method": "POST"}, "http"),
        ({"path": "a.txt", "content": "x"}, "file"),
        ({"query": "shoes"}, "record"),
        ({"to": "a@b.example", "body": "x" * 300}, "record"),
        ({}, "record"),
    ],
)
def test_the_view_is_guessed(args: dict[str, Any], presenter: str) -> None:
    definition = undeclared_tools.build_definition("call", args, HELD)
    assert definition.presenter == presenter
    assert definition.validator.is_valid(args)
    assert definition.is_undeclared
    assert (definition.by_agent, definition.batchable) == (True, None)
    assert definition.standing_grant is None


def test_only_the_same_kind_of_call_has_the_same_definition() -> None:
    first, same, other = (
        undeclared_tools.build_definition("note", args, HELD)
        for args in ({"text": "a"}, {"text": "b"}, {"text": 1})
    )
    assert first == same != other
    assert not first.validator.is_valid({"text": "a", "to": "b"})


def test_it_needs_a_person_and_says_why() -> None:
    document = builders.document({"unknown_tools": {"hold": "money"}})
    definition = undeclared_tools.build_definition("wipe", {"deep": True}, HELD)
    facts = {**builders.facts(), "args": {"deep": True}}
    result = evaluation.evaluate(document, definition, facts)
    assert (result.tier, result.queue) == (Tier.APPROVE, "money")
    assert "tool.undeclared" in {rule.id for rule in result.rules}
    assert result.flags == ("not in the policy",)


def test_a_policy_names_a_queue_that_it_has() -> None:
    with pytest.raises(InvalidPolicy) as refused:
        builders.document({"unknown_tools": {"hold": "nowhere"}})
    assert refused.value.errors[0]["path"] == "unknown_tools.hold"


def test_no_policy_declares_a_tool_as_undeclared() -> None:
    with pytest.raises(InvalidPolicy):
        builders.document({}, undeclared=True)


@pytest.mark.parametrize(
    ("before", "after", "verb"),
    [
        ("refuse", {"hold": "money"}, "asks for less"),
        ({"hold": "money"}, "refuse", "asks for more"),
        ({"hold": "money", "tier": "escalate"}, {"hold": "money"}, "asks for less"),
    ],
)
def test_holding_what_was_refused_asks_for_less(
    before: Any, after: Any, verb: str
) -> None:
    documents = [builders.document({"unknown_tools": each}) for each in (before, after)]
    (change,) = changes.list_changes(*documents)
    assert verb in change.text


def test_a_tool_is_compared_with_its_calls_as_unknown_ones() -> None:
    held = {"unknown_tools": {"hold": "money"}}
    bare = builders.document({**held, "measures": {}, "tools": {}})
    for risk, verb in (("low", "asks for less"), ("high", "changes")):
        full = builders.document({**held, "measures": {}}, risk=risk)
        (change,) = changes.list_changes(bare, full)
        assert verb in change.text
        assert "held in money before" in change.text
        (change,) = changes.list_changes(full, bare)
        assert "asks for less" in change.text


def test_rules_for_every_tool_apply_to_it() -> None:
    rule = {
        "id": "all",
        "text": "Everything escalates.",
        "tools": ["*"],
        "when": "true",
        "then": {"tier": "escalate"},
    }
    document = builders.document({"unknown_tools": {"hold": "money"}, "rules": [rule]})
    definition = undeclared_tools.build_definition("wipe", {}, HELD)
    facts = {**builders.facts(), "args": {}}
    result = evaluation.evaluate(document, definition, facts)
    assert result.tier is Tier.ESCALATE


def test_a_value_in_depth_is_declared_as_it_is() -> None:
    args = {"rows": [{"sku": "A", "n": 1}, {"sku": "B", "n": None}], "none": None}
    definition = undeclared_tools.build_definition("import_rows", args, HELD)
    assert definition.inspectable == {"rows", "none"}
    assert definition.validator.is_valid(args)
    deep: Any = "x"
    for _ in range(12):
        deep = {"in": deep}
    definition = undeclared_tools.build_definition("nest", {"deep": deep}, HELD)
    assert definition.inspectable == frozenset()


def test_what_the_agent_says_is_a_part_of_the_version() -> None:
    said = ToolDescription("Gives a credit.", {"type": "object", "properties": {}})
    plain, described = (
        undeclared_tools.build_definition("credit", {"n": 1}, HELD, each)
        for each in (ToolDescription(), said)
    )
    assert plain != described
    assert plain.arguments == described.arguments  # it checks nothing


@pytest.mark.parametrize(
    ("name", "args", "holds"),
    [
        ("issue_credit", {}, True),
        ("\x1b[2J", {}, False),
        ("", {}, False),
        ("a" * 65, {}, False),
        ("wipe", {f"p{n}": n for n in range(201)}, False),
    ],
)
def test_not_every_call_can_be_held(
    name: str, args: dict[str, Any], holds: bool
) -> None:
    assert undeclared_tools.can_hold(name, args) is holds
