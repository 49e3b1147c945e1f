"""What a rule may say, checked when the policy is saved and not when it is needed."""

from __future__ import annotations

import pytest

from policies.documents import RESERVED_RULE_IDS, InvalidPolicy, parse_document
from tests.policies import builders
from tests.policies.builders import rule


def refusal(*rules, **tool):
    with pytest.raises(InvalidPolicy) as refused:
        parse_document(builders.data({"rules": list(rules)}, **tool))
    return {error["path"]: error["message"] for error in refused.value.errors}


READER = {
    "reader": {"kind": "webhook", "url": "http://a.example/r"},
    "facts": ["total"],
    "keys": ["customer"],
}


@pytest.mark.parametrize(
    "when",
    [
        "args.amount > 1",
        'args["amount"] > 1',
        '"note" in args && args.note == "x"',
        'money.currency == "USD" && money.amount_minor > 1',
        "sum.paid > 1 && count.paid > 1 && count.failures > 1",
        "clock.hour > 1 && clock.weekday == 'mon' && !clock.desk_open",
        "agent.unattended || agent.name == 'x'",
        "profile.blast_radius > 3 || profile.novel",
        "before.total > 1 && keys.customer == 'C'",
        "floor == 'auto' && risk == 'low' && class == '' && thread == 't'",
        "uncertain > 0.5",
        "before.total",
    ],
)
def test_a_rule_reads_what_its_tools_have(when):
    document = parse_document(
        builders.data({"rules": [rule(when=when, tier="approve")]}, **READER)
    )
    assert document.rules[0].condition.text == when


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("args.amout > 1", "pay has no args.amout"),
        ("sum.failures > 1", "pay has no sum.failures"),
        ("count.refunds > 1", "pay has no count.refunds"),
        ("clock.store_open", "pay has no clock.store_open"),
        ("agent.owner == 'x'", "pay has no agent.owner"),
        ("before.totl > 1", "pay has no before.totl"),
        ("keys.order == 'x'", "pay has no keys.order"),
        ("money.minor > 1", "pay has no money.minor"),
        ("args.note == 'x'", "args.note may be absent"),
        ('"nite" in args', "pay has no args.nite"),
        ("args.amount >", "Syntax error"),
    ],
)
def test_a_slip_is_refused_when_it_is_saved(when, says):
    refused = refusal(rule(when=when, tier="approve"), **READER)
    assert says in refused["rules.a.rule.when"]


def test_a_rule_of_every_tool_reads_only_what_all_have():
    every = {**rule(when="args.amount > 1", tier="approve"), "tools": ["*"]}
    plain = {**builders.TOOL, "money": [], "schema": {"type": "object"}, "effect": "x"}
    tools = {"pay": builders.TOOL, "look": plain}
    with pytest.raises(InvalidPolicy) as refused:
        parse_document(builders.data({"rules": [every], "tools": tools}))
    assert refused.value.errors == [
        {"path": "rules.a.rule.when", "message": "look has no args.amount"}
    ]


@pytest.mark.parametrize(
    ("then", "path"),
    [
        ({}, "then"),
        ({"tier": "lower"}, "then.tier"),
        ({"queue": "nowhere"}, "then.queue"),
        ({"timeout": "10s"}, "then.timeout"),
        ({"step": {"role": "owner", "required": 1}}, "then.step.role"),
        ({"flag": "x" * 41}, "then.flag"),
        ({"block": "yes"}, "then.block"),
    ],
)
def test_a_rule_does_something_that_exists(then, path):
    assert f"rules.a.rule.{path}" in refusal(rule(**then))


def test_ids_are_unique_and_not_the_gates_own():
    assert "rules.a.rule" in refusal(rule(tier="approve"), rule(tier="approve"))
    for name in (*RESERVED_RULE_IDS, "class.own"):
        if name == "unreviewable" or "." in name:
            assert f"rules.{name}.id" in refusal(rule(name, tier="approve"))


def test_a_rule_names_tools_that_exist():
    nobody = {**rule(tier="approve"), "tools": ["nothing"]}
    assert "rules.a.rule.tools" in refusal(nobody)
