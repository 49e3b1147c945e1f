"""CEL: refused when it is written wrong, blocking when it cannot be evaluated."""

from __future__ import annotations

import pytest

from policies.conditions import (
    MAX_LENGTH,
    ConditionError,
    ConditionFacts,
    InvalidCondition,
    compile_condition,
)
from tests.processor_time import costs_less


def holds(text, **facts):
    return compile_condition(text).holds(ConditionFacts(facts))


def test_a_condition_holds_or_does_not():
    assert holds("args.amount > 50000", args={"amount": 50001})
    assert not holds("args.amount > 50000", args={"amount": 50000})
    assert holds(
        'tool == "x" && !agent.unattended', tool="x", agent={"unattended": 0 > 1}
    )
    assert holds("uncertain >= 0.5", uncertain=0.5)
    assert holds('clock.weekday in ["sat", "sun"]', clock={"weekday": "sun"})
    assert holds("before.shipped", before={"shipped": True})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("amout > 1", "undeclared reference to 'amout'"),
        ("tool > 1", "no matching overload"),
        ('sum.refunds > "a"', "no matching overload"),
        ("uncertain > 1", "no matching overload"),
        ("1", "true or false"),
        ("tool", "true or false"),
        ("args.amount >", "Syntax error"),
        ("args.tags.exists(t, t == 1)", "undeclared"),
        ("[1].all(x, x == 1)", "undeclared"),
        ("has(args.amount)", "undeclared reference to 'has'"),
        ('tool.matches("(a+)+$")', "undeclared reference to 'matches'"),
        ("now() > 1", "undeclared reference to 'now'"),
        ("args[tool] == 1", "name what it reads"),
        ("(" * 200 + "true" + ")" * 200, "recursion limit"),
        ("true" + " " * MAX_LENGTH, "at most"),
        ("", "Syntax error"),
    ],
)
def test_what_cannot_be_a_condition_is_refused_when_it_is_written(text, says):
    with pytest.raises(InvalidCondition, match=says.replace("(", r"\(")):
        compile_condition(text)


@pytest.mark.parametrize(
    ("text", "facts", "says"),
    [
        ("args.amount > 1", {"args": {}}, "args.amount does not exist"),
        ("(args).amount > 1", {"args": {}}, "a fact that does not exist"),
        ("args.amount > 1", {"args": {"amount": "9"}}, "types or sizes"),
        ("args.amount > 1", {}, "types or sizes"),
        ("before.shipped", {"before": {"shipped": "yes"}}, "types or sizes"),
        ("before.shipped", {"before": {"shipped": None}}, "types or sizes"),
        ("1 / args.n > 1", {"args": {"n": 0}}, "types or sizes"),
        ("args.n * 9000000000000000 > 1", {"args": {"n": 9**12}}, "types or sizes"),
        ("args.n > 1", {"args": {"n": 2**70}}, "types or sizes"),
        ("args.n > 1", {"args": {"n": object()}}, "types or sizes"),
        ("sum.x > 1", {"sum": {"x": "1"}}, "types or sizes"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error_and_quotes_no_value(text, facts, says):
    with pytest.raises(ConditionError, match=says):
        holds(text, **facts)


def test_facts_that_cannot_be_read_at_all_are_an_error():
    with pytest.raises(ConditionError):
        holds("args.t == 'x'", args={"t": "\ud800"})


def test_presence_can_be_asked_first():
    text = '"partial" in args && args.partial'
    assert not holds(text, args={})
    assert holds(text, args={"partial": True})


def test_it_knows_what_it_reads_and_what_it_tests():
    text = """ "a" in args && args.a > 1 && sum["x"] > 1 && 'args.b' != tool
        // args.c
        && clock.hour > 1 """
    condition = compile_condition(text)
    assert condition.reads == {("args", "a"), ("sum", "x"), ("clock", "hour")}
    assert condition.tested == {("args", "a")}


def test_an_evaluation_takes_microseconds():
    condition = compile_condition("args.amount > 50000 && sum.x > 1")
    facts = ConditionFacts({"args": {"amount": 60000}, "sum": {"x": 2}})

    def evaluate_often() -> None:
        for _ in range(1000):
            assert condition.holds(facts)

    assert costs_less(evaluate_often, seconds=0.1)
